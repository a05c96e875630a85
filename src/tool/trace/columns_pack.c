/* SPDX-License-Identifier: MIT */
/* A stream of samples taken apart into columns, and these packed. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <zstd.h>

#include "tool/trace/columns.h"
#include "tool/trace/columns_priv.h"
#include "tool/trace/trace_priv.h"

#define ZSTD_LEVEL   9
#define GRID_SHIFT   4		  /* of the smoothed grid */
#define TICK_MAX     (1ull << 40) /* ns; and a step is at most 2^62 away */
#define DISTANCE_MAX (1ll << 62)

int bytes_put(struct bytes *bytes, const void *from, size_t length)
{
	size_t room = 2 * (bytes->length + length) + 256;
	uint8_t *at;

	if (bytes->length + length > bytes->room) {
		at = realloc(bytes->at, room);
		if (!at)
			return -ENOMEM;
		bytes->at = at;
		bytes->room = room;
	}
	if (length)
		memcpy(bytes->at + bytes->length, from, length);
	bytes->length += length;
	return 0;
}

int bytes_put_frame(struct bytes *bytes, const void *from, size_t length)
{
	size_t bound = ZSTD_compressBound(length), packed_length;
	void *packed = malloc(bound);
	int rc = -ENOMEM;

	if (!packed)
		return rc;
	packed_length = ZSTD_compress(packed, bound, from, length, ZSTD_LEVEL);
	if (!ZSTD_isError(packed_length))
		rc = bytes_put(bytes, packed, packed_length);
	free(packed);
	return rc;
}

static int put_u64(struct bytes *out, uint64_t value)
{
	return bytes_put(out, &value, sizeof(value));
}

static int put_column(struct bytes *out, const uint8_t *column, size_t length)
{
	size_t at = out->length, nonzero = 0;
	uint64_t packed;
	int rc;

	while (nonzero < length && !column[nonzero])
		nonzero++;
	rc = put_u64(out, 0);
	if (rc || nonzero == length)
		return rc;
	rc = bytes_put_frame(out, column, length);
	packed = out->length - at - sizeof(packed);
	memcpy(out->at + at, &packed, sizeof(packed));
	return rc;
}

static int put_values(struct bytes *out, const uint64_t *values, size_t number)
{
	uint8_t *plane = malloc(number + 1);
	int rc = plane ? 0 : -ENOMEM;

	for (unsigned int p = 0; p < VALUE_PLANES && !rc; p++) {
		for (size_t i = 0; i < number; i++)
			plane[i] = (uint8_t)(values[i] >> 8 * p);
		rc = put_column(out, plane, number);
	}
	free(plane);
	return rc;
}

/* ---- taking apart ---- */

static int columns_init(struct columns *columns, size_t length)
{
	size_t samples = length / SAMPLE_BYTES_MIN + 1;

	*columns = (struct columns){
		.prefixes = malloc(length + 1),
		.ids = malloc(samples),
		.times = calloc(samples, sizeof(*columns->times)),
		.natives = calloc(samples, sizeof(*columns->natives)),
		.pythons = calloc(samples, sizeof(*columns->pythons)),
		.counts = calloc(samples, sizeof(*columns->counts)),
	};
	return columns->prefixes && columns->ids && columns->times && columns->natives &&
			       columns->pythons && columns->counts
		       ? 0
		       : -ENOMEM;
}

void columns_release(struct columns *columns)
{
	free(columns->prefixes);
	free(columns->ids);
	free(columns->times);
	free(columns->natives);
	free(columns->pythons);
	free(columns->counts);
}

static bool take_packet(struct columns *columns, struct packets *packets)
{
	uint32_t id;

	memcpy(columns->prefixes + columns->nr_packets++ * CTF_PREFIX_BYTES, &packets->prefix,
	       CTF_PREFIX_BYTES);
	for (;;) {
		const uint8_t *at = packets->bytes + packets->at;
		uint64_t i = columns->nr_samples;
		size_t bytes;

		if (!packets_event(packets, &id))
			return packets->at == packets->end;
		bytes = id & 1 ? 16 : 12;
		if (id >= 2 * EVENTS_MAX || packets->end - packets->at < bytes)
			return false;
		columns->ids[i] = (uint8_t)id;
		if (packets->bytes + packets->at - at > 4)
			columns->ids[i] |= COLUMN_LONG_HEADER;
		at = packets->bytes + packets->at;
		columns->times[i] = packets->now_ns;
		memcpy(&columns->natives[i], at, 4); /* the upper half is 0 already */
		memcpy(&columns->pythons[i], at + 4, 4);
		memcpy(&columns->counts[i], at + 8, bytes - 8);
		packets->at += bytes;
		columns->nr_samples++;
	}
}

static bool take_apart(struct columns *columns, const uint8_t *stream, size_t length)
{
	struct packets packets;

	packets_init(&packets, stream, length);
	while (packets_next(&packets, CTF_STREAM_SAMPLES))
		if (packets.damage || !take_packet(columns, &packets))
			return false;
	return !packets.damage;
}

/* ---- times ---- */

struct grid {
	uint64_t tick, shift;
};

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median distance of samples, made exact over the whole length where they lie on a grid. */
static uint64_t find_tick(const uint64_t *times, size_t number, uint64_t *scratch)
{
	uint64_t median, steps = 0, covered = 0;
	size_t distances = 0;

	for (size_t i = 1; i < number; i++)
		if (times[i] > times[i - 1])
			scratch[distances++] = times[i] - times[i - 1];
	if (!distances)
		return 1;
	qsort(scratch, distances, sizeof(*scratch), compare_numbers);
	median = scratch[distances / 2];
	if (median >= TICK_MAX)
		return TICK_MAX;
	for (size_t i = 0; i < distances; i++) {
		if (scratch[i] >= TICK_MAX)
			break;
		steps += (scratch[i] + median / 2) / median;
		covered += scratch[i];
	}
	return steps && covered / steps ? covered / steps : median;
}

/* Steps and rests of all times; returns the bits that they need. */
static uint64_t follow_grid(const uint64_t *times, size_t number, struct grid grid, uint64_t *steps,
			    uint64_t *rests)
{
	int64_t tick = (int64_t)grid.tick;
	uint64_t point = 0, bits = 0;

	for (size_t i = 0; i < number; i++) {
		int64_t distance = (int64_t)(times[i] - point), step = 0, rest;

		if (distance > -DISTANCE_MAX && distance < DISTANCE_MAX)
			step = (distance + (distance < 0 ? -tick : tick) / 2) / tick;
		rest = (int64_t)(times[i] - point - (uint64_t)step * grid.tick);
		point += (uint64_t)step * grid.tick + (uint64_t)(rest >> grid.shift);
		steps[i] = zigzag((uint64_t)step - 1); /* most are one tick on */
		rests[i] = zigzag((uint64_t)rest);
		bits += (rests[i] ? 64u - (unsigned int)__builtin_clzll(rests[i]) : 0) +
			(steps[i] ? 64u - (unsigned int)__builtin_clzll(steps[i]) : 0);
	}
	return bits;
}

static int put_times(struct bytes *out, const uint64_t *times, size_t number)
{
	uint64_t *steps = calloc(number + 1, sizeof(*steps));
	uint64_t *rests = calloc(number + 1, sizeof(*rests));
	struct grid grid = {.shift = GRID_SHIFT}, plain = {.shift = 0};
	int rc = steps && rests ? 0 : -ENOMEM;

	if (!rc) {
		grid.tick = plain.tick = find_tick(times, number, rests);
		if (follow_grid(times, number, plain, steps, rests) <=
		    follow_grid(times, number, grid, steps, rests)) {
			grid = plain;
			follow_grid(times, number, grid, steps, rests);
		}
		rc = put_u64(out, grid.tick);
	}
	rc = rc ? rc : put_u64(out, grid.shift);
	rc = rc ? rc : put_values(out, steps, number);
	rc = rc ? rc : put_values(out, rests, number);
	free(steps);
	free(rests);
	return rc;
}

/* ---- dictionaries ---- */

struct word {
	uint64_t value, uses;
	uint32_t first; /* its place in order of appearance */
};

static int compare_words(const void *a, const void *b)
{
	const struct word *x = a, *y = b;

	if (x->uses != y->uses)
		return x->uses > y->uses ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

/* Count the distinct values; @ret_places: per value its word's place. */
static int count_words(const uint64_t *values, size_t number, struct word *words,
		       uint32_t *ret_places, size_t *ret_nr_words)
{
	struct map map = {0};
	size_t nr_words = 0;

	for (size_t i = 0; i < number; i++) {
		uint32_t *place = map_at(&map, values[i], (uint32_t)nr_words);

		if (!place) {
			map_release(&map);
			return -ENOMEM;
		}
		if (*place == nr_words) {
			words[nr_words] = (struct word){.value = values[i], .first = *place};
			nr_words++;
		}
		words[*place].uses++;
		ret_places[i] = *place;
	}
	map_release(&map);
	*ret_nr_words = nr_words;
	return 0;
}

static int put_words(struct bytes *out, struct word *words, size_t nr_words, uint32_t *ret_ranks)
{
	uint64_t *differences = calloc(nr_words + 1, sizeof(*differences));
	uint64_t last = 0;
	int rc;

	if (!differences)
		return -ENOMEM;
	if (nr_words)
		qsort(words, nr_words, sizeof(*words), compare_words);
	for (size_t i = 0; i < nr_words; i++) {
		ret_ranks[words[i].first] = (uint32_t)i;
		differences[i] = zigzag(words[i].value - last);
		last = words[i].value;
	}
	rc = put_u64(out, nr_words);
	rc = rc ? rc : put_values(out, differences, nr_words);
	free(differences);
	return rc;
}

static int put_dictionary(struct bytes *out, uint64_t *values, size_t number)
{
	struct word *words = calloc(number + 1, sizeof(*words));
	uint32_t *places = calloc(number + 1, sizeof(*places));
	uint32_t *ranks = calloc(number + 1, sizeof(*ranks));
	size_t nr_words;
	int rc = words && places && ranks ? 0 : -ENOMEM;

	rc = rc ? rc : count_words(values, number, words, places, &nr_words);
	rc = rc ? rc : put_words(out, words, nr_words, ranks);
	for (size_t i = 0; i < number && !rc; i++)
		values[i] = ranks[places[i]];
	rc = rc ? rc : put_values(out, values, number);
	free(words);
	free(places);
	free(ranks);
	return rc;
}

static int put_columns(struct bytes *out, struct columns *columns)
{
	size_t number = columns->nr_samples;
	int rc;

	rc = put_u64(out, columns->nr_samples);
	rc = rc ? rc : put_u64(out, columns->nr_packets);
	rc = rc ? rc : put_column(out, columns->prefixes, columns->nr_packets * CTF_PREFIX_BYTES);
	rc = rc ? rc : put_column(out, columns->ids, number);
	rc = rc ? rc : put_times(out, columns->times, number);
	rc = rc ? rc : put_dictionary(out, columns->natives, number);
	rc = rc ? rc : put_dictionary(out, columns->pythons, number);
	return rc ? rc : put_dictionary(out, columns->counts, number);
}

/* Only what comes back byte by byte is good. */
static int check_columns(const uint8_t *stream, size_t length, const uint8_t *packed,
			 size_t packed_length)
{
	uint8_t *again = malloc(length + 1);
	int rc;

	if (!again)
		return -ENOMEM;
	rc = columns_unpack(packed, packed_length, again, length);
	if (!rc && memcmp(again, stream, length))
		rc = -EBADMSG;
	free(again);
	return rc;
}

int columns_pack(const uint8_t *stream, size_t length, struct bytes *out)
{
	size_t start = out->length;
	struct columns columns;
	int rc = columns_init(&columns, length);

	if (!rc && !take_apart(&columns, stream, length))
		rc = -EBADMSG;
	rc = rc ? rc : put_columns(out, &columns);
	columns_release(&columns);
	rc = rc ? rc : check_columns(stream, length, out->at + start, out->length - start);
	if (rc)
		out->length = start;
	return rc;
}
