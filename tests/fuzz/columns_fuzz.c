/* SPDX-License-Identifier: MIT */
/*
 * Columns of sample streams and of definitions, both ways. The first byte chooses: bit 1 clear, a
 * stream of samples, set, definitions; even, the rest is such a stream, and if it can be packed it
 * must come back (packing checks); odd, the rest is 4 bytes of length and packed columns, and what
 * comes out of them, packed and unpacked again, must be the same.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tool/trace/columns.h"

#define STREAM_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int pack(const uint8_t *bytes, size_t length, bool is_samples, struct bytes *out)
{
	return is_samples ? columns_pack(bytes, length, out) : definitions_pack(bytes, length, out);
}

static int unpack(const struct bytes *packed, bool is_samples, uint8_t *bytes, size_t length)
{
	return is_samples ? columns_unpack(packed->at, packed->length, bytes, length)
			  : definitions_unpack(packed->at, packed->length, bytes, length);
}

static void try_packed(const struct bytes *packed, bool is_samples, size_t length)
{
	uint8_t *stream = malloc(length + 1), *again = malloc(length + 1);
	struct bytes out = {0};

	if (!unpack(packed, is_samples, stream, length) &&
	    !pack(stream, length, is_samples, &out) &&
	    (unpack(&out, is_samples, again, length) || memcmp(stream, again, length)))
		abort();
	free(stream);
	free(again);
	free(out.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct bytes out = {0}, packed;
	bool is_samples;
	uint32_t unpacked;

	if (length < 5)
		return 0;
	is_samples = !(bytes[0] & 2);
	if (bytes[0] & 1) {
		memcpy(&unpacked, bytes + 1, sizeof(unpacked));
		packed = (struct bytes){.at = malloc(length - 4), .length = length - 5};
		memcpy(packed.at, bytes + 5, length - 5);
		try_packed(&packed, is_samples, unpacked % STREAM_BYTES_MAX);
		free(packed.at);
		return 0;
	}
	pack(bytes + 1, length - 1, is_samples, &out);
	free(out.at);
	return 0;
}
