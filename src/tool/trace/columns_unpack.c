/* SPDX-License-Identifier: MIT */
/*
 * Columns back to the stream of samples. The bytes are foreign: the numbers of samples and packets
 * are bounded by the length that the stream is to have, each column has exactly the bytes that
 * follow from them, and ranks and event sizes are checked where they are used.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <zstd.h>

#include "core/event/ctf.h"
#include "core/event/event.h"
#include "tool/trace/coder.h"
#include "tool/trace/columns.h"
#include "tool/trace/columns_priv.h"

int frame_unpack(const uint8_t *packed, size_t packed_length, void *to, size_t length)
{
	return ZSTD_decompress(to, length, packed, packed_length) == length ? 0 : -EBADMSG;
}

int u64_get(struct source *source, uint64_t *ret_value)
{
	if (source->end - source->at < (ptrdiff_t)sizeof(*ret_value))
		return -EBADMSG;
	memcpy(ret_value, source->at, sizeof(*ret_value));
	source->at += sizeof(*ret_value);
	return 0;
}

int column_get(struct source *source, uint8_t *column, size_t length)
{
	uint64_t packed;
	uint8_t kind;
	int rc;

	if (source->at == source->end)
		return -EBADMSG;
	kind = *source->at++;
	if (kind == COLUMN_ZERO) {
		memset(column, 0, length);
		return 0;
	}
	rc = u64_get(source, &packed);
	if (rc || packed > (uint64_t)(source->end - source->at))
		return -EBADMSG;
	if (kind == COLUMN_FRAME)
		rc = frame_unpack(source->at, (size_t)packed, column, length);
	else if (kind == COLUMN_CODED && packed >= length / COLUMN_RATIO_MAX)
		coder_unpack(source->at, (size_t)packed, column, length);
	else
		rc = -EBADMSG;
	source->at += packed;
	return rc;
}

/* @values must be zeroed. */
int values_get(struct source *source, uint64_t *values, size_t number)
{
	uint8_t *plane = malloc(number + 1);
	int rc = plane ? 0 : -ENOMEM;

	for (unsigned int p = 0; p < VALUE_PLANES && !rc; p++) {
		rc = column_get(source, plane, number);
		for (size_t i = 0; i < number && !rc; i++)
			values[i] |= (uint64_t)plane[i] << 8 * p;
	}
	free(plane);
	return rc;
}

static int get_times(struct source *source, uint64_t *times, size_t number)
{
	uint64_t *steps = calloc(number + 1, sizeof(*steps));
	uint64_t *rests = calloc(number + 1, sizeof(*rests));
	struct grid grid = {0};
	uint64_t point;
	int rc = steps && rests ? 0 : -ENOMEM;

	rc = rc ? rc : u64_get(source, &grid.tick);
	rc = rc ? rc : u64_get(source, &grid.origin);
	rc = rc ? rc : u64_get(source, &grid.fixed);
	if (!rc && grid.fixed > 1)
		rc = -EBADMSG;
	rc = rc ? rc : values_get(source, steps, number);
	rc = rc ? rc : values_get(source, rests, number);
	point = grid.origin;
	for (size_t i = 0; i < number && !rc; i++) {
		point += (unzigzag(steps[i]) + 1) * grid.tick;
		times[i] = point + unzigzag(rests[i]);
		if (!grid.fixed)
			point = times[i];
	}
	free(steps);
	free(rests);
	return rc;
}

static int look_up(uint64_t *values, size_t number, const uint64_t *words, uint64_t nr_words)
{
	for (size_t i = 0; i < number; i++) {
		if (values[i] >= nr_words)
			return -EBADMSG;
		values[i] = words[values[i]];
	}
	return 0;
}

static int get_dictionary(struct source *source, uint64_t *values, size_t number)
{
	uint64_t nr_words = 0, last = 0;
	uint64_t *words;
	int rc = u64_get(source, &nr_words);

	if (rc || nr_words > number)
		return -EBADMSG;
	words = calloc(nr_words + 1, sizeof(*words));
	if (!words)
		return -ENOMEM;
	rc = values_get(source, words, nr_words);
	for (size_t i = 0; i < nr_words && !rc; i++) {
		last += unzigzag(words[i]);
		words[i] = last;
	}
	rc = rc ? rc : values_get(source, values, number);
	rc = rc ? rc : look_up(values, number, words, nr_words);
	free(words);
	return rc;
}

static int get_columns(struct source *source, struct columns *columns, size_t length)
{
	size_t number;
	int rc;

	rc = u64_get(source, &columns->nr_samples);
	rc = rc ? rc : u64_get(source, &columns->nr_packets);
	if (rc || columns->nr_samples > length / SAMPLE_BYTES_MIN ||
	    columns->nr_packets > length / CTF_PREFIX_BYTES)
		return -EBADMSG;
	number = (size_t)columns->nr_samples;
	columns->prefixes = malloc(columns->nr_packets * CTF_PREFIX_BYTES + 1);
	columns->ids = malloc(number + 1);
	columns->times = calloc(number + 1, sizeof(*columns->times));
	columns->natives = calloc(number + 1, sizeof(*columns->natives));
	columns->pythons = calloc(number + 1, sizeof(*columns->pythons));
	columns->counts = calloc(number + 1, sizeof(*columns->counts));
	if (!columns->prefixes || !columns->ids || !columns->times || !columns->natives ||
	    !columns->pythons || !columns->counts)
		return -ENOMEM;
	rc = column_get(source, columns->prefixes, columns->nr_packets * CTF_PREFIX_BYTES);
	rc = rc ? rc : column_get(source, columns->ids, number);
	rc = rc ? rc : get_times(source, columns->times, number);
	rc = rc ? rc : get_dictionary(source, columns->natives, number);
	rc = rc ? rc : get_dictionary(source, columns->pythons, number);
	return rc ? rc : get_dictionary(source, columns->counts, number);
}

/* ---- putting together ---- */

struct target {
	const struct columns *columns;
	uint64_t sample; /* the next */
	uint8_t *at, *end;
};

/* Write the next sample; false where it does not fit before @end. */
static bool put_sample(struct target *target, const uint8_t *end)
{
	const struct columns *columns = target->columns;
	uint64_t i = target->sample++;
	uint32_t id = columns->ids[i] & ~COLUMN_LONG_HEADER;
	bool is_long = columns->ids[i] & COLUMN_LONG_HEADER;
	size_t header = is_long ? 13 : 4, count = id & 1 ? 8 : 4;
	uint32_t compact = (id & 31) | (uint32_t)(columns->times[i] << 5);

	if ((size_t)(end - target->at) < header + 8 + count)
		return false;
	if (is_long) {
		target->at[0] = (uint8_t)CTF_ID_EXTENDED;
		memcpy(target->at + 1, &id, sizeof(id));
		memcpy(target->at + 5, &columns->times[i], 8);
	} else {
		memcpy(target->at, &compact, sizeof(compact));
	}
	target->at += header;
	memcpy(target->at, &columns->natives[i], 4);
	memcpy(target->at + 4, &columns->pythons[i], 4);
	memcpy(target->at + 8, &columns->counts[i], count);
	target->at += 8 + count;
	return true;
}

static bool put_packet(struct target *target, const uint8_t *prefix)
{
	struct ctf_packet_prefix fields;
	const uint8_t *end;

	memcpy(&fields, prefix, sizeof(fields));
	if (fields.packet_bits / 8 < CTF_PREFIX_BYTES ||
	    fields.packet_bits / 8 > (uint64_t)(target->end - target->at))
		return false;
	end = target->at + fields.packet_bits / 8;
	memcpy(target->at, prefix, CTF_PREFIX_BYTES);
	target->at += CTF_PREFIX_BYTES;
	while (target->at < end)
		if (target->sample == target->columns->nr_samples || !put_sample(target, end))
			return false;
	return true;
}

static bool put_together(const struct columns *columns, uint8_t *stream, size_t length)
{
	struct target target = {.columns = columns, .at = stream, .end = stream + length};

	for (uint64_t i = 0; i < columns->nr_packets; i++)
		if (!put_packet(&target, columns->prefixes + i * CTF_PREFIX_BYTES))
			return false;
	return target.at == target.end && target.sample == columns->nr_samples;
}

int columns_unpack(const uint8_t *packed, size_t packed_length, uint8_t *stream, size_t length)
{
	struct source source = {.at = packed, .end = packed + packed_length};
	struct columns columns = {0};
	int rc = get_columns(&source, &columns, length);

	if (!rc && (source.at != source.end || !put_together(&columns, stream, length)))
		rc = -EBADMSG;
	columns_release(&columns);
	return rc;
}
