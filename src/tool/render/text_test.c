/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/render/example_trace_test.h"
#include "tool/render/render.h"

int main(int argc, char **argv)
{
	struct text_options o = {.limit = 30};
	struct errbuf e;
	setlocale(LC_CTYPE, "C.UTF-8");
	setenv("TZ", "UTC", 1);
	o.width = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	for (const char *a = argv[1]; *a; a++) {
		if (*a == 'f')
			o.by_function = 1;
		if (*a == 'l')
			o.by_line = 1;
		if (*a == 'F')
			o.by_file = 1;
		if (*a == 't')
			o.tree = 1;
		if (*a == 'i')
			o.tree = o.inverted = 1;
		if (*a == 'T')
			o.per_thread = 1;
		if (*a == 's')
			o.source = "main.py";
		if (*a == 'c')
			o.color = 1;
		if (*a == 'm')
			o.min_share = 0.25;
		if (*a == 'j')
			return json_write(example_trace(), stdout, &e);
		if (*a == '0')
			exporters[0]->write(example_trace(), stdout, &e);
		if (*a == '1')
			exporters[1]->write(example_trace(), stdout, &e);
		if (*a == '2')
			exporters[2]->write(example_trace(), stdout, &e);
		if (*a == '3')
			exporters[3]->write(example_trace(), stdout, &e);
	}
	return text_write(example_trace(), &o, stdout, &e);
}
