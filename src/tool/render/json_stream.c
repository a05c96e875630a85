/* SPDX-License-Identifier: MIT */
#include "tool/render/json_stream.h"

#include <string.h>

#include "tool/render/display.h"

static void write_string(struct json_stream *json, const char *text);

/* What stands before an item: a comma, a line break or a blank, its key. */
static void begin_item(struct json_stream *json, const char *key)
{
	FILE *out = json->out;

	if (json->after_first)
		putc_unlocked(',', out);
	if (json->level > 0 && json->level <= json->lines) {
		putc_unlocked('\n', out);
		display_pad(out, (size_t)json->level);
	} else if (json->after_first) {
		putc_unlocked(' ', out);
	}
	json->after_first = true;
	if (key) {
		write_string(json, key);
		fwrite_unlocked(": ", 1, 2, out);
	}
}

void json_part(struct json_stream *json)
{
	begin_item(json, NULL);
}

void json_begin(struct json_stream *json, const char *key, char bracket)
{
	begin_item(json, key);
	putc_unlocked(bracket, json->out);
	json->level++;
	json->after_first = false;
}

void json_end(struct json_stream *json, char bracket)
{
	if (json->after_first && json->level <= json->lines) {
		putc_unlocked('\n', json->out);
		display_pad(json->out, (size_t)json->level - 1);
	}
	putc_unlocked(bracket, json->out);
	json->level--;
	json->after_first = true;
}

static bool needs_escape(const struct json_stream *json, uint32_t code)
{
	if (code < 0x20 || code == '"' || code == '\\' || code == 0x7f)
		return true;
	if (code == 0x2028 || code == 0x2029)
		return true;
	return json->in_html && (code == '<' || code == '>' || code == '&');
}

/* The length of what needs nothing, which is most of any text. */
static size_t plain_length(const struct json_stream *json, const char *text)
{
	size_t length = 0;

	while ((unsigned char)text[length] < 0x7f &&
	       !needs_escape(json, (unsigned char)text[length]))
		length++;
	return length;
}

static void write_escape(FILE *out, uint32_t code)
{
	if (code == '"' || code == '\\')
		fprintf(out, "\\%c", (char)code);
	else if (code == '\n')
		fputs_unlocked("\\n", out);
	else
		fprintf(out, "\\u%04x", code);
}

static void write_string(struct json_stream *json, const char *text)
{
	FILE *out = json->out;

	putc_unlocked('"', out);
	while (*text) {
		size_t length = plain_length(json, text);
		uint32_t code;

		fwrite_unlocked(text, 1, length, out);
		text += length;
		if (!*text)
			break;
		length = utf8_next(text, &code);
		if (code == UTF8_INVALID)
			fputs_unlocked("\xef\xbf\xbd", out);
		else if (needs_escape(json, code))
			write_escape(out, code);
		else
			fwrite_unlocked(text, 1, length, out);
		text += length;
	}
	putc_unlocked('"', out);
}

void json_text(struct json_stream *json, const char *key, const char *text)
{
	begin_item(json, key);
	if (text)
		write_string(json, text);
	else
		fputs_unlocked("null", json->out);
}

/* printf takes most of the time of a large document otherwise. */
static void write_number(FILE *out, uint64_t number)
{
	char digits[20]; /* of 2^64 */
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, out);
}

void json_number(struct json_stream *json, const char *key, uint64_t number)
{
	begin_item(json, key);
	write_number(json->out, number);
}

void json_signed(struct json_stream *json, const char *key, int64_t number)
{
	begin_item(json, key);
	if (number < 0)
		putc_unlocked('-', json->out);
	write_number(json->out, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void json_line(struct json_stream *json, const char *key, uint32_t line)
{
	if (line)
		json_number(json, key, line);
	else
		json_text(json, key, NULL);
}

void json_share(struct json_stream *json, const char *key, double share)
{
	begin_item(json, key);
	fprintf(json->out, "%.6g", share);
}

void json_bool(struct json_stream *json, const char *key, bool truth)
{
	begin_item(json, key);
	fputs_unlocked(truth ? "true" : "false", json->out);
}
