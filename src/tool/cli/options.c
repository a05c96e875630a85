/* SPDX-License-Identifier: MIT */
/*
 * Option parsing from tables. Two tables are searched, the command's and then the common one, so
 * a command may take a short name that is common elsewhere. Long names may be cut to a unique
 * prefix; "-abc" is "-a -b -c"; values stand in the same word ("-n5", "--limit=5") or the next.
 *
 * The operands are moved to the end of argv, in their order; the words before them are used up.
 */
#include "tool/cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/cli/commands.h"
#include "tool/cli/options_value.h"
#include "tool/events/suggest.h"

#define GO_ON	    (-1)
#define OPTIONS_MAX 64 /* of a command and the common ones: a table, so only a bug exceeds it */
#define COMMON_MAX  8  /* rows of the common table */

/* A parse under way. */
struct parse {
	const struct command_spec *command;
	struct option_spec common[COMMON_MAX];
	struct common_options values;
	const char *color;
	bool verbose, help, version;
	int argc, next; /* next: index of the next word to look at */
	char **argv;
};

void complain(const char *command, const char *format, ...)
{
	char text[2 * ERRBUF_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* A sentence may quote names out of a recording: none of them may drive the terminal. */
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
	fprintf(stderr, "pathprof%s%s: %s\n", command ? " " : "", command ? command : "", text);
}

bool color_wanted(const struct common_options *common, int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (common->color != COLOR_AUTO)
		return common->color == COLOR_ALWAYS;
	return !(no_color && *no_color) && isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static void common_table(struct parse *parse)
{
	const struct option_spec table[COMMON_MAX] = {
		{'q', "quiet", OPTION_FLAG, NULL, "Say less on stderr", &parse->values.quiet},
		{'v', "verbose", OPTION_FLAG, NULL, "Say more on stderr", &parse->verbose},
		{0, "color", OPTION_STRING, "WHEN", "Colour: auto (the default), always or never",
		 &parse->color},
		{0, "no-pager", OPTION_FLAG, NULL, "Do not send the output through a pager",
		 &parse->values.no_pager},
		{'h', "help", OPTION_FLAG, NULL, "Print this help and exit", &parse->help},
		{0, "version", OPTION_FLAG, NULL, "Print the version and exit", &parse->version},
		{0},
	};

	memcpy(parse->common, table, sizeof(table));
}

static int usage_error(const struct parse *parse, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int usage_error(const struct parse *parse, const char *format, ...)
{
	const char *name = parse->command->name;
	char text[ERRBUF_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain(name, "%s; see pathprof %s --help", text, name);
	return EXIT_USAGE;
}

#define HELP_COLUMNS 80

/*
 * Prints words from column @at on, further lines from @indent on. An empty line
 * stays, and so does a line that begins with a space.
 */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
	while (*text) {
		size_t word = strcspn(text, " \n");

		if (at > indent && at + 1 + word > HELP_COLUMNS) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", (int)word, text);
		at += word;
		text += word;
		while (strncmp(text, "\n\n", 2) == 0 || strncmp(text, "\n ", 2) == 0) {
			size_t line = text[1] == '\n' ? 2 : 1 + strcspn(text + 1, "\n");

			printf("%.*s", (int)line, text);
			text += line;
			at = indent;
		}
		text += *text == ' ' || *text == '\n';
	}
	putchar('\n');
}

static void print_options(const struct option_spec *option, size_t width)
{
	for (; option->long_name; option++) {
		int used;

		used = option->short_name ? printf("  -%c, ", option->short_name)
					  : printf("      ");
		used += printf("--%s", option->long_name);
		if (option->argument)
			used += printf("=%s", option->argument);
		printf("%*s", (int)width - used + 2, "");
		print_wrapped(option->help, width + 2, width + 2);
	}
}

static size_t options_width(const struct option_spec *option)
{
	size_t width = 0;

	for (; option->long_name; option++) {
		size_t this = 8 + strlen(option->long_name);

		if (option->argument)
			this += 1 + strlen(option->argument);
		if (this > width)
			width = this;
	}
	return width;
}

static void print_help(const struct parse *parse)
{
	const struct command_spec *command = parse->command;
	size_t width = options_width(command->options), common = options_width(parse->common);

	if (common > width)
		width = common;
	printf("Usage: pathprof %s %s\n\n", command->name, command->usage);
	print_wrapped(command->description, 0, 0);
	printf("\nOptions:\n");
	print_options(command->options, width);
	print_options(parse->common, width);
	if (command->examples)
		printf("\nExamples:\n%s\n", command->examples);
}

/* Is it this option's name, or its beginning? */
static const struct option_spec *find_long(const struct option_spec *option, const char *name,
					   size_t length, size_t *nr_prefix)
{
	const struct option_spec *found = NULL;

	for (; option->long_name; option++) {
		if (strncmp(option->long_name, name, length) != 0)
			continue;
		if (option->long_name[length] == 0) {
			*nr_prefix = 1;
			return option;
		}
		found = option;
		++*nr_prefix;
	}
	return found;
}

static const struct option_spec *find_short(const struct option_spec *option, char name)
{
	for (; option->long_name; option++) {
		if (option->short_name == name)
			return option;
	}
	return NULL;
}

static int unknown_long(const struct parse *parse, const char *name, size_t length)
{
	const char *names[OPTIONS_MAX + 1] = {NULL}, *nearest;
	char typed[64];
	size_t nr = 0;

	for (const struct option_spec *o = parse->command->options; o->long_name; o++)
		if (nr < OPTIONS_MAX)
			names[nr++] = o->long_name;
	for (const struct option_spec *o = parse->common; o->long_name; o++)
		if (nr < OPTIONS_MAX)
			names[nr++] = o->long_name;
	snprintf(typed, sizeof(typed), "%.*s", (int)length, name);
	nearest = suggest(typed, names);
	if (nearest)
		return usage_error(parse, "unknown option '--%.*s' (did you mean '--%s'?)",
				   (int)length, name, nearest);
	return usage_error(parse, "unknown option '--%.*s'", (int)length, name);
}

static int ambiguous_long(const struct parse *parse, const char *name, size_t length)
{
	const struct option_spec *tables[] = {parse->command->options, parse->common};
	char list[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < 2; i++) {
		for (const struct option_spec *o = tables[i]; o->long_name; o++) {
			if (strncmp(o->long_name, name, length) != 0 || used >= sizeof(list))
				continue;
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s--%s",
						 used ? ", " : "", o->long_name);
		}
	}
	return usage_error(parse, "option '--%.*s' is ambiguous: %s", (int)length, name, list);
}

static int set_color(struct parse *parse)
{
	static const char *const modes[] = {"auto", "always", "never"};

	for (unsigned int i = 0; i < 3; i++) {
		if (strcmp(parse->color, modes[i]) == 0) {
			parse->values.color = (enum color_mode)i;
			return GO_ON;
		}
	}
	return usage_error(parse, "--color takes auto, always or never, not '%s'", parse->color);
}

static int set_option(struct parse *parse, const struct option_spec *option, const char *text)
{
	const char *wanted;

	if (option->type == OPTION_FLAG) {
		*(bool *)option->value = true;
		if (option->value == &parse->verbose)
			parse->values.verbose++;
		return GO_ON;
	}
	if (option->type == OPTION_ONCE && *(const char **)option->value)
		return usage_error(parse, "--%s is given twice, with '%s' and '%s': one at a time",
				   option->long_name, *(const char **)option->value, text);
	wanted = option_value_parse(option->type, text, option->value);
	if (wanted)
		return usage_error(parse, "--%s takes %s, not '%s'", option->long_name, wanted,
				   text);
	return option->value == &parse->color ? set_color(parse) : GO_ON;
}

static int parse_long(struct parse *parse, const char *name)
{
	size_t length = strcspn(name, "="), nr_own = 0, nr_common = 0;
	const struct option_spec *option, *common;
	const char *text = name[length] ? name + length + 1 : NULL;

	option = find_long(parse->command->options, name, length, &nr_own);
	common = find_long(parse->common, name, length, &nr_common);
	if (!option || (common && common->long_name[length] == 0))
		option = common;
	if (!option || length == 0)
		return unknown_long(parse, name, length);
	if (option->long_name[length] != 0 && nr_own + nr_common > 1)
		return ambiguous_long(parse, name, length);
	if (option->type == OPTION_FLAG && text)
		return usage_error(parse, "--%s takes no value", option->long_name);
	if (option->value == &parse->color && !text)
		text = "always"; /* as git and ls do: the value is optional */
	if (option->type != OPTION_FLAG && !text) {
		if (parse->next >= parse->argc)
			return usage_error(parse, "--%s needs a value: %s", option->long_name,
					   option->argument);
		text = parse->argv[parse->next++];
	}
	return set_option(parse, option, text);
}

static int parse_short(struct parse *parse, const char *letters)
{
	for (; *letters; letters++) {
		const struct option_spec *option = find_short(parse->command->options, *letters);
		const char *text = NULL;
		int status;

		if (!option)
			option = find_short(parse->common, *letters);
		if (!option)
			return usage_error(parse, "unknown option '-%c'", *letters);
		if (option->type != OPTION_FLAG) {
			text = letters + 1;
			if (!*text && parse->next >= parse->argc)
				return usage_error(parse, "-%c needs a value: %s", *letters,
						   option->argument);
			if (!*text)
				text = parse->argv[parse->next++];
		}
		status = set_option(parse, option, text);
		if (status != GO_ON || text)
			return status;
	}
	return GO_ON;
}

/* Every word; operands are gathered in @operands. */
static int parse_words(struct parse *parse, char **operands, int *nr_operands)
{
	while (parse->next < parse->argc) {
		char *word = parse->argv[parse->next++];
		bool option = word[0] == '-' && word[1];
		int status;

		if (!option || strcmp(word, "--") == 0) {
			if (!option)
				operands[(*nr_operands)++] = word;
			if (option || parse->command->stop_at_operand) {
				while (parse->next < parse->argc)
					operands[(*nr_operands)++] = parse->argv[parse->next++];
			}
			continue;
		}
		status =
			word[1] == '-' ? parse_long(parse, word + 2) : parse_short(parse, word + 1);
		if (status != GO_ON)
			return status;
		if (parse->help) {
			print_help(parse);
			return EXIT_OK;
		}
		if (parse->version) {
			puts("pathprof " PATHPROF_VERSION);
			return EXIT_OK;
		}
	}
	return GO_ON;
}

int options_parse(const struct command_spec *command, int argc, char **argv,
		  struct common_options *ret_common, int *ret_operands)
{
	struct parse parse = {.command = command, .argc = argc, .next = 1, .argv = argv};
	char **operands = calloc((size_t)argc + 1, sizeof(*operands));
	int nr_operands = 0, status;

	if (!operands) {
		complain(command->name, "Cannot read the options: out of memory");
		return EXIT_FAILED;
	}
	common_table(&parse);
	status = parse_words(&parse, operands, &nr_operands);
	if (status == GO_ON) {
		memcpy(argv + argc - nr_operands, operands,
		       (size_t)nr_operands * sizeof(*operands));
		*ret_common = parse.values;
		*ret_operands = argc - nr_operands;
	}
	free(operands);
	return status;
}
