/* SPDX-License-Identifier: MIT */
/* One file made of a recording. */
#include "tool/trace/archive.h"

#include <errno.h>

int input_open_archive(struct input *ret_input, const uint8_t *bytes, size_t length,
		       struct errbuf *err)
{
	(void)ret_input;
	(void)bytes;
	(void)length;
	return errbuf_set(err, -EBADMSG, "Not a recording: neither a directory nor an archive");
}

int archive_unpack(const struct input *input, const struct input_file *file, uint8_t **ret_bytes,
		   size_t *ret_length, struct errbuf *err)
{
	(void)input;
	(void)file;
	(void)ret_bytes;
	(void)ret_length;
	return errbuf_set(err, -EBADMSG, "Not an archive");
}
