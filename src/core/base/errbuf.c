/* SPDX-License-Identifier: MIT */
/* The one sentence that a failed operation leaves behind. */
#include "core/base/errbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int errbuf_set(struct errbuf *err, int code, const char *format, ...)
{
	va_list arguments;

	if (!err)
		return code;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	return code;
}

int errbuf_prepend(struct errbuf *err, int code, const char *format, ...)
{
	struct errbuf old;
	va_list arguments;
	size_t length;

	if (!err)
		return code;
	old = *err;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	length = strlen(err->text);
	if (old.text[0])
		snprintf(err->text + length, sizeof(err->text) - length, ": %s", old.text);
	return code;
}
