/* SPDX-License-Identifier: MIT */
/* A stream of samples taken apart into columns, and these packed. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <zstd.h>

#include "tool/trace/coder.h"
#include "tool/trace/columns.h"
#include "tool/trace/columns_priv.h"
#include "tool/trace/trace_priv.h"

#define LEVEL	      9
#define LEVEL_SMALL   19 /* of up to SMALL_BYTES of text, which take a quarter of a second */
#define SMALL_BYTES   (512u << 10)
#define WORTH_CODING  0.995	   /* of the frame's length */
#define TICK_MAX      (1ull << 40) /* ns; and a step is at most 2^62 away */
#define DISTANCE_MAX  (1ll << 62)
#define RAISED	      (1ull << 63) /* orders signed numbers as unsigned ones */
#define MEDIAN_VALUES 20000	   /* enough for a median */

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

static int put_frame(struct bytes *bytes, const void *from, size_t length, int level)
{
	size_t bound = ZSTD_compressBound(length), packed_length;
	void *packed = malloc(bound);
	int rc = -ENOMEM;

	if (!packed)
		return rc;
	packed_length = ZSTD_compress(packed, bound, from, length, level);
	if (!ZSTD_isError(packed_length))
		rc = bytes_put(bytes, packed, packed_length);
	free(packed);
	return rc;
}

static int text_level(size_t length)
{
	return length <= SMALL_BYTES ? LEVEL_SMALL : LEVEL;
}

int bytes_put_frame(struct bytes *bytes, const void *from, size_t length)
{
	return put_frame(bytes, from, length, text_level(length));
}

int u64_put(struct bytes *out, uint64_t value)
{
	return bytes_put(out, &value, sizeof(value));
}

/* The bits that a column needs at least, each byte by its frequency. */
static double column_bits(const uint8_t *column, size_t length)
{
	size_t uses[256] = {0};
	double bits = 0;

	for (size_t i = 0; i < length; i++)
		uses[column[i]]++;
	for (unsigned int byte = 0; byte < 256; byte++)
		if (uses[byte])
			bits += (double)uses[byte] * log2((double)length / (double)uses[byte]);
	return bits;
}

/* Code the column instead of the frame at @at, where that is worth the time: 1 if so, 0 if not. */
static int code_column(struct bytes *out, const uint8_t *column, size_t length, size_t at)
{
	size_t frame_length = out->length - at;
	struct bytes coded = {0};
	int rc = 0;

	if (column_bits(column, length) / 8 > (double)frame_length * WORTH_CODING)
		return 0;
	rc = coder_pack(column, length, &coded);
	if (!rc && coded.length < frame_length && coded.length >= length / COLUMN_RATIO_MAX) {
		memcpy(out->at + at, coded.at, coded.length);
		out->length = at + coded.length;
		rc = 1;
	}
	free(coded.at);
	return rc;
}

static int put_column(struct bytes *out, const uint8_t *column, size_t length, int level)
{
	uint8_t kind = COLUMN_ZERO;
	size_t at = out->length, nonzero = 0, start = at + sizeof(kind) + sizeof(uint64_t);
	uint64_t packed_length;
	int rc;

	while (nonzero < length && !column[nonzero])
		nonzero++;
	rc = bytes_put(out, &kind, sizeof(kind));
	if (rc || nonzero == length)
		return rc;
	rc = u64_put(out, 0);
	rc = rc ? rc : put_frame(out, column, length, level);
	rc = rc ? rc : code_column(out, column, length, start);
	if (rc < 0)
		return rc;
	kind = rc ? COLUMN_CODED : COLUMN_FRAME;
	packed_length = out->length - start;
	memcpy(out->at + at, &kind, sizeof(kind));
	memcpy(out->at + at + sizeof(kind), &packed_length, sizeof(packed_length));
	return 0;
}

int column_put(struct bytes *out, const uint8_t *column, size_t length)
{
	return put_column(out, column, length, LEVEL);
}

int text_put(struct bytes *out, const uint8_t *text, size_t length)
{
	return put_column(out, text, length, text_level(length));
}

static void take_plane(const uint64_t *values, size_t number, unsigned int p, uint8_t *plane)
{
	for (size_t i = 0; i < number; i++)
		plane[i] = (uint8_t)(values[i] >> 8 * p);
}

int values_put(struct bytes *out, const uint64_t *values, size_t number)
{
	uint8_t *plane = malloc(number + 1);
	int rc = plane ? 0 : -ENOMEM;

	for (unsigned int p = 0; p < VALUE_PLANES && !rc; p++) {
		take_plane(values, number, p, plane);
		rc = column_put(out, plane, number);
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

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values, size_t number)
{
	qsort(values, number, sizeof(*values), compare_numbers);
	return values[number / 2];
}

/* The median distance of samples, some of them where there are many. */
static uint64_t median_distance(const struct columns *columns, uint64_t *scratch)
{
	size_t stride = columns->nr_samples / MEDIAN_VALUES + 1, distances = 0;
	uint64_t middle;

	for (size_t i = 1; i < columns->nr_samples; i += stride)
		if (columns->times[i] > columns->times[i - 1])
			scratch[distances++] = columns->times[i] - columns->times[i - 1];
	middle = distances ? median(scratch, distances) : 1;
	return middle < TICK_MAX ? middle : TICK_MAX;
}

/* What most samples count, if most do the same: of a clock or timer this is its tick. */
static uint64_t usual_count(const struct columns *columns)
{
	uint64_t usual = 1, votes = 0;

	for (size_t i = 0; i < columns->nr_samples; i++) {
		if (!votes)
			usual = columns->counts[i];
		votes = columns->counts[i] == usual ? votes + 1 : votes - 1;
	}
	return usual && usual < TICK_MAX ? usual : 1;
}

/* The ticks, to the nearest, from @point to @time. */
static int64_t steps_to(uint64_t time, uint64_t point, uint64_t tick)
{
	int64_t distance = (int64_t)(time - point), half = (int64_t)tick / 2;

	if (distance <= -DISTANCE_MAX || distance >= DISTANCE_MAX)
		return 0;
	return (distance + (distance < 0 ? -half : half)) / (int64_t)tick;
}

/* Lay the fixed grid through the middle of the samples, which may be late but not early. */
static uint64_t find_origin(const struct columns *columns, uint64_t tick, uint64_t *scratch)
{
	size_t stride = columns->nr_samples / MEDIAN_VALUES + 1;
	uint64_t origin = columns->nr_samples ? columns->times[0] : 0;

	/* Twice, as the first sample may stand half a tick from the others. */
	for (unsigned int round = 0; round < 2 && columns->nr_samples; round++) {
		size_t rests = 0;

		for (size_t i = 0; i < columns->nr_samples; i += stride) {
			uint64_t time = columns->times[i];

			scratch[rests++] = time - origin -
					   (uint64_t)steps_to(time, origin, tick) * tick + RAISED;
		}
		origin += median(scratch, rests) - RAISED;
	}
	return origin;
}

/* Steps and rests of all times. */
static void follow_grid(const struct columns *columns, struct grid grid, uint64_t *steps,
			uint64_t *rests)
{
	uint64_t point = grid.origin;

	for (size_t i = 0; i < columns->nr_samples; i++) {
		int64_t step = steps_to(columns->times[i], point, grid.tick);
		uint64_t rest;

		point += (uint64_t)step * grid.tick;
		rest = columns->times[i] - point;
		if (!grid.fixed)
			point = columns->times[i];
		steps[i] = zigzag((uint64_t)step - 1); /* most are one tick on */
		rests[i] = zigzag(rest);
	}
}

/* The bits of all planes; @plane is scratch. */
static double values_bits(const uint64_t *values, size_t number, uint8_t *plane)
{
	double bits = 0;

	for (unsigned int p = 0; p < VALUE_PLANES; p++) {
		take_plane(values, number, p, plane);
		bits += column_bits(plane, number);
	}
	return bits;
}

/* Of the grids that may fit, the one that takes the fewest bits; all else is scratch. */
static struct grid choose_grid(const struct columns *columns, uint64_t *steps, uint64_t *rests,
			       uint8_t *plane)
{
	const uint64_t ticks[] = {usual_count(columns), median_distance(columns, rests)};
	struct grid best = {.tick = 1};
	double best_bits = INFINITY;

	for (unsigned int i = 0; i < 4; i++) {
		struct grid grid = {.tick = ticks[i / 2], .fixed = i & 1};
		double bits;

		if (grid.fixed)
			grid.origin = find_origin(columns, grid.tick, rests);
		follow_grid(columns, grid, steps, rests);
		bits = values_bits(steps, columns->nr_samples, plane) +
		       values_bits(rests, columns->nr_samples, plane);
		if (bits < best_bits) {
			best_bits = bits;
			best = grid;
		}
	}
	return best;
}

static int put_times(struct bytes *out, const struct columns *columns)
{
	size_t number = columns->nr_samples;
	uint64_t *steps = calloc(number + 1, sizeof(*steps));
	uint64_t *rests = calloc(number + 1, sizeof(*rests));
	uint8_t *plane = malloc(number + 1);
	int rc = steps && rests && plane ? 0 : -ENOMEM;
	struct grid grid;

	if (!rc) {
		grid = choose_grid(columns, steps, rests, plane);
		follow_grid(columns, grid, steps, rests);
		rc = bytes_put(out, &grid, sizeof(grid));
	}
	rc = rc ? rc : values_put(out, steps, number);
	rc = rc ? rc : values_put(out, rests, number);
	free(steps);
	free(rests);
	free(plane);
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
	rc = u64_put(out, nr_words);
	rc = rc ? rc : values_put(out, differences, nr_words);
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
	rc = rc ? rc : values_put(out, values, number);
	free(words);
	free(places);
	free(ranks);
	return rc;
}

static int put_all(struct bytes *out, struct columns *columns)
{
	size_t number = columns->nr_samples;
	int rc;

	rc = u64_put(out, columns->nr_samples);
	rc = rc ? rc : u64_put(out, columns->nr_packets);
	rc = rc ? rc : column_put(out, columns->prefixes, columns->nr_packets * CTF_PREFIX_BYTES);
	rc = rc ? rc : column_put(out, columns->ids, number);
	rc = rc ? rc : put_times(out, columns);
	rc = rc ? rc : put_dictionary(out, columns->natives, number);
	rc = rc ? rc : put_dictionary(out, columns->pythons, number);
	return rc ? rc : put_dictionary(out, columns->counts, number);
}

int columns_check(struct bytes *out, size_t start, const uint8_t *bytes, size_t length,
		  columns_unpacker *unpack)
{
	uint8_t *again = malloc(length + 1);
	int rc;

	if (!again)
		return -ENOMEM;
	rc = unpack(out->at + start, out->length - start, again, length);
	if (!rc && memcmp(again, bytes, length))
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
	rc = rc ? rc : put_all(out, &columns);
	columns_release(&columns);
	rc = rc ? rc : columns_check(out, start, stream, length, columns_unpack);
	if (rc)
		out->length = start;
	return rc;
}
