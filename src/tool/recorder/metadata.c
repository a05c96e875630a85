/* SPDX-License-Identifier: MIT */
/*
 * The TSDL text of ust/metadata: the bytes of core/event/ctf.h, told to CTF readers.
 *
 * The clock's uuid is the boot id and its offset the distance to the epoch, so that traces of one
 * boot can be merged by time.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char types[] =
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;\n"
	"typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := char_t;\n"
	"\n";

static const char layout[] =
	"typealias integer {\n"
	"	size = 27; align = 1; signed = false; map = clock.monotonic.value;\n"
	"} := time27_t;\n"
	"typealias integer {\n"
	"	size = 64; align = 8; signed = false; map = clock.monotonic.value;\n"
	"} := time64_t;\n"
	"\n"
	"struct packet_context {\n"
	"	time64_t timestamp_begin;\n"
	"	time64_t timestamp_end;\n"
	"	uint64_t content_size;\n"
	"	uint64_t packet_size;\n"
	"	uint64_t packet_seq_num;\n"
	"	uint64_t events_discarded;\n"
	"	uint32_t vpid;\n"
	"	uint32_t vtid;\n"
	"	char_t procname[16];\n"
	"};\n"
	"\n"
	"struct event_header {\n"
	"	enum : integer { size = 5; align = 1; signed = false; } {\n"
	"		compact = 0 ... 30, extended = 31\n"
	"	} id;\n"
	"	variant <id> {\n"
	"		struct { time27_t timestamp; } compact;\n"
	"		struct { uint32_t id; time64_t timestamp; } extended;\n"
	"	} v;\n"
	"} align(8);\n"
	"\n"
	"stream {\n"
	"	id = 0;\n"
	"	event.header := struct event_header;\n"
	"	packet.context := struct packet_context;\n"
	"};\n"
	"\n"
	"stream {\n"
	"	id = 1;\n"
	"	event.header := struct event_header;\n"
	"	packet.context := struct packet_context;\n"
	"};\n"
	"\n";

static const char waits[] =
	"stream {\n"
	"	id = 2;\n"
	"	event.header := struct event_header;\n"
	"	packet.context := struct packet_context;\n"
	"};\n"
	"event {\n"
	"	name = \"wait\"; id = 0; stream_id = 2;\n"
	"	fields := struct {\n"
	"		uint32_t pid; uint32_t tid; uint32_t native; uint32_t python;\n"
	"		uint64_t start_ns; uint64_t duration_ns; uint64_t count;\n"
	"		enum : uint8_t { other = 1, lock = 2, runnable = 3, unseen = 4 } kind;\n"
	"	};\n"
	"};\n"
	"event {\n"
	"	name = \"thread_waits\"; id = 1; stream_id = 2;\n"
	"	fields := struct {\n"
	"		uint32_t pid; uint32_t tid;\n"
	"		uint64_t waits; uint64_t waited_ns; uint64_t seen; uint64_t seen_ns;\n"
	"		uint64_t rejected;\n"
	"	};\n"
	"};\n";

static const char definition_events[] =
	"event {\n"
	"	name = \"code\"; id = 0; stream_id = 1;\n"
	"	fields := struct {\n"
	"		uint32_t id; uint32_t first_line; uint8_t line_table_kind;\n"
	"		string name; string file;\n"
	"		uint32_t line_table_length; uint8_t line_table[line_table_length];\n"
	"	};\n"
	"};\n"
	"event {\n"
	"	name = \"node\"; id = 1; stream_id = 1;\n"
	"	fields := struct {\n"
	"		uint32_t id; uint32_t parent; uint8_t kind; uint8_t flags;\n"
	"		uint32_t owner; address_t position;\n"
	"	};\n"
	"};\n"
	"event {\n"
	"	name = \"module\"; id = 2; stream_id = 1;\n"
	"	fields := struct {\n"
	"		uint32_t id; address_t start; address_t end; address_t file_offset;\n"
	"		string build_id; string path;\n"
	"	};\n"
	"};\n"
	"event {\n"
	"	name = \"thread\"; id = 3; stream_id = 1;\n"
	"	fields := struct {\n"
	"		uint32_t slot; uint32_t pid; uint32_t tid;\n"
	"		uint64_t start_ns; uint64_t end_ns; uint64_t cpu_ns; uint64_t samples;\n"
	"		uint64_t lost; uint64_t overrun; uint64_t voluntary_switches; string "
	"name;\n"
	"	};\n"
	"};\n"
	"event {\n"
	"	name = \"process\"; id = 4; stream_id = 1;\n"
	"	fields := struct {\n"
	"		uint32_t pid; uint32_t ppid; uint64_t start_ns; uint8_t recorded;\n"
	"		string command; string reason;\n"
	"	};\n"
	"};\n";

/* A TSDL string: what could end or break it is left out. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		if ((unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7f)
			fputc(*text, out);
	}
	fputc('"', out);
}

static void put_uuid(FILE *out, const uint8_t uuid[16])
{
	for (int i = 0; i < 16; i++)
		fprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static void put_boot_id(FILE *out)
{
	char text[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, text, 36) == 36)
		fprintf(out, "	uuid = \"%s\";\n", text);
	close(fd);
}

static void put_head(FILE *out, const struct recorder *recorder)
{
	struct utsname system;

	fprintf(out, "/* CTF 1.8 */\n\n%s", types);
	fprintf(out, "trace {\n	major = 1;\n	minor = 8;\n	uuid = \"");
	put_uuid(out, recorder->uuid);
	fprintf(out, "\";\n	byte_order = le;\n"
		     "	packet.header := struct {\n"
		     "		uint32_t magic;\n		uint8_t uuid[16];\n"
		     "		uint32_t stream_id;\n		uint64_t stream_instance_id;\n"
		     "	};\n};\n\n");
	if (!uname(&system)) {
		fprintf(out, "env {\n	hostname = ");
		put_quoted(out, system.nodename);
		fprintf(out,
			";\n	tracer_name = \"pathprof\";\n	tracer_version = \"%s\";\n"
			"	sysname = \"Linux\";\n	kernel_release = ",
			PATHPROF_VERSION);
		put_quoted(out, system.release);
		fprintf(out, ";\n};\n\n");
	}
	fprintf(out, "clock {\n	name = \"monotonic\";\n");
	put_boot_id(out);
	fprintf(out,
		"	description = \"CLOCK_MONOTONIC\";\n	freq = 1000000000;\n"
		"	offset = %lld;\n};\n\n%s",
		(long long)recorder->clock_offset_ns, layout);
}

static void put_sample_event(FILE *out, uint32_t id, const char *kind, const char *event,
			     const char *count_type)
{
	char name[16 + EVENT_NAME_BYTES];

	snprintf(name, sizeof(name), "%s:%s", kind, event);
	fprintf(out, "event {\n	name = ");
	put_quoted(out, name);
	fprintf(out,
		"; id = %u; stream_id = 0;\n"
		"	fields := struct { uint32_t native; uint32_t python; %s count; };\n};\n",
		id, count_type);
}

char *metadata_text(const struct recorder *recorder)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	put_head(out, recorder);
	for (uint32_t i = 0; i < recorder->request->nr_events; i++) {
		const char *name = recorder->request->events[i].name;

		put_sample_event(out, 2 * i, "sample", name, "uint32_t");
		put_sample_event(out, 2 * i + 1, "sample_wide", name, "uint64_t");
	}
	fputs(definition_events, out);
	if (recorder->request->wall_ns)
		fputs(waits, out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

int metadata_write(const struct recorder *recorder, struct errbuf *err)
{
	char *text = metadata_text(recorder);
	size_t length = text ? strlen(text) : 0;
	ssize_t written;
	int fd, code = 0;

	if (!text)
		return errbuf_set(err, -ENOMEM, "Out of memory");
	fd = directory_open_file(recorder->directory.ust_fd, RECORDING_METADATA, O_EXCL);
	if (fd < 0)
		errno = -fd;
	written = fd < 0 ? -1 : write(fd, text, length);
	if (written != (ssize_t)length)
		code = errbuf_set(err, written < 0 ? -errno : -ENOSPC,
				  "Cannot write %s/ust/metadata: %s", recorder->directory.path,
				  written < 0 ? strerror(errno) : "the disk is full");
	if (fd >= 0)
		close(fd);
	free(text);
	return code;
}
