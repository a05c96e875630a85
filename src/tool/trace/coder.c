/* SPDX-License-Identifier: MIT */
/*
 * An adaptive binary arithmetic coder, for columns where nothing repeats and zstd gives up: zstd
 * stores bytes of which none is more frequent than one in 128, and needs a bit for each at least.
 *
 * A byte is eight decisions, highest bit first. Which bits went before chooses the chance, one of
 * 255, that this one is set; the chance then moves towards what came, by 1 / 2, 1 / 3, .. and at
 * last 1 / RATE_MAX of the way. The code is a number in [low, high]; each decision keeps the part
 * of that interval that has its chance of the length, and leading bytes that are equal go out.
 * Both sides do the same, in integers.
 */
#include "tool/trace/coder.h"

#include <stdbool.h>

#include "tool/trace/columns.h"

#define CHANCE_ONE  (1u << 28) /* certain */
#define CHANCE_BITS 16	       /* of a chance, those that the interval is divided by */
#define RATE_MAX    512
#define CODE_BYTES  4

struct chance {
	uint32_t set;  /* of CHANCE_ONE */
	uint32_t rate; /* the next move is 1 / rate of the way */
};

struct model {
	struct chance chances[256]; /* by 1 and the bits that went before */
	uint32_t low, high;
};

static void model_init(struct model *model)
{
	for (unsigned int i = 0; i < 256; i++)
		model->chances[i] = (struct chance){.set = CHANCE_ONE / 2, .rate = 2};
	model->low = 0;
	model->high = UINT32_MAX;
}

/* The last number of the part for a bit that is set: at least low, and less than high. */
static uint32_t divide(const struct model *model, const struct chance *chance)
{
	uint64_t length = model->high - model->low;

	return model->low + (uint32_t)(length * (chance->set >> (28 - CHANCE_BITS)) >> CHANCE_BITS);
}

static void learn(struct model *model, struct chance *chance, unsigned int bit, uint32_t middle)
{
	if (bit) {
		model->high = middle;
		chance->set += (CHANCE_ONE - 1 - chance->set) / chance->rate;
	} else {
		model->low = middle + 1;
		chance->set -= chance->set / chance->rate;
	}
	if (chance->rate < RATE_MAX)
		chance->rate++;
}

static bool settled(const struct model *model)
{
	return (model->low ^ model->high) >> 24 == 0;
}

static void shift_out(struct model *model)
{
	model->low <<= 8;
	model->high = model->high << 8 | 0xff;
}

int coder_pack(const uint8_t *column, size_t length, struct bytes *out)
{
	uint8_t code[64]; /* of one byte of the column: far less */
	struct model model;
	size_t nr_code = 0;
	int rc = 0;

	model_init(&model);
	for (size_t i = 0; i < length && !rc; i++) {
		for (unsigned int before = 1; before < 256;) {
			struct chance *chance = &model.chances[before];
			unsigned int bit =
				column[i] >> (__builtin_clz(before) - 24) & 1; /* of 7 to 0 */

			learn(&model, chance, bit, divide(&model, chance));
			before = before << 1 | bit;
			for (; settled(&model); shift_out(&model))
				code[nr_code++] = (uint8_t)(model.high >> 24);
		}
		rc = bytes_put(out, code, nr_code);
		nr_code = 0;
	}
	for (unsigned int i = 0; i < CODE_BYTES; i++)
		code[i] = (uint8_t)(model.high >> 8 * (3 - i));
	return rc ? rc : bytes_put(out, code, CODE_BYTES);
}

void coder_unpack(const uint8_t *packed, size_t packed_length, uint8_t *column, size_t length)
{
	const uint8_t *end = packed + packed_length;
	struct model model;
	uint32_t code = 0;

	model_init(&model);
	for (unsigned int i = 0; i < CODE_BYTES; i++)
		code = code << 8 | (packed < end ? *packed++ : 0);
	for (size_t i = 0; i < length; i++) {
		unsigned int before = 1;

		while (before < 256) {
			struct chance *chance = &model.chances[before];
			uint32_t middle = divide(&model, chance);
			unsigned int bit = code <= middle;

			learn(&model, chance, bit, middle);
			before = before << 1 | bit;
			for (; settled(&model); shift_out(&model))
				code = code << 8 | (packed < end ? *packed++ : 0);
		}
		column[i] = (uint8_t)before;
	}
}
