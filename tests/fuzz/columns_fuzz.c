/* SPDX-License-Identifier: MIT */
/*
 * Columns of sample streams, both ways. The first byte chooses: even, the rest is a stream, and if
 * it can be packed it must come back (columns_pack checks); odd, the rest is 4 bytes of length and
 * packed columns, and what comes out of them, packed and unpacked again, must be the same.
 */
#include <stdlib.h>
#include <string.h>

#include "tool/trace/columns.h"

#define STREAM_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void unpack(const uint8_t *packed, size_t packed_length, size_t length)
{
	uint8_t *stream = malloc(length + 1), *again = malloc(length + 1);
	struct bytes out = {0};

	if (!columns_unpack(packed, packed_length, stream, length) &&
	    !columns_pack(stream, length, &out) &&
	    (columns_unpack(out.at, out.length, again, length) || memcmp(stream, again, length)))
		abort();
	free(stream);
	free(again);
	free(out.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct bytes out = {0};
	uint32_t unpacked;

	if (length < 5)
		return 0;
	if (bytes[0] & 1) {
		memcpy(&unpacked, bytes + 1, sizeof(unpacked));
		unpack(bytes + 5, length - 5, unpacked % STREAM_BYTES_MAX);
		return 0;
	}
	columns_pack(bytes + 1, length - 1, &out);
	free(out.at);
	return 0;
}
