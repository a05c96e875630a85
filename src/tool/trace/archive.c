/* SPDX-License-Identifier: MIT */
/*
 * One file made of a recording.
 *
 *   magic    8 bytes, "PPROFAR1"
 *   entries  each: u32 kind, u32 name_length, u64 length, u64 packed_length, u64 checksum, name,
 *            packed bytes
 *   last     kind ARCHIVE_END, length: the number of entries, all else 0
 *
 * Little endian. `length` is the file's when unpacked, `checksum` of its name and content. Kinds:
 * ARCHIVE_FILE is one zstd frame; ARCHIVE_SAMPLES is a sample stream as columns (columns.h) and
 * ARCHIVE_DEFINITIONS the definitions with columns of nodes (columns_nodes.c), where they come
 * back byte by byte; ARCHIVE_STORED is the file as it is, for tests and fuzzing, without
 * checksum. Manifest and definitions come first, so that an archive that was cut off can still be
 * read.
 *
 * Foreign bytes: names are of the form manifest.json or ust/NAME; lengths are inside the file; and
 * what an archive unpacks to is bounded by UNPACKED_MIN + UNPACKED_RATIO times its size, as a small
 * file could else ask for all memory.
 */
#include "tool/trace/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/trace/columns.h"

#define MAGIC	       "PPROFAR1"
#define MAGIC_BYTES    8
#define UNPACKED_MIN   (64ull << 20)
#define UNPACKED_RATIO 1024 /* real recordings: about 6 */

enum archive_kind {
	ARCHIVE_END = 0,
	ARCHIVE_FILE = 1,
	ARCHIVE_SAMPLES = 2,
	ARCHIVE_STORED = 3,
	ARCHIVE_DEFINITIONS = 4,
};

struct entry_header {
	uint32_t kind, name_length;
	uint64_t length, packed_length, checksum;
};

_Static_assert(sizeof(struct entry_header) == 32, "entry headers are stored");

/* Finds damage, not malice: a multiplication for each eight bytes. */
static uint64_t mix(uint64_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, bytes + at, length - at < sizeof(word) ? length - at : sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum + length;
}

static uint64_t checksum(const char *name, const uint8_t *bytes, size_t length)
{
	return mix(mix(0, (const uint8_t *)name, strlen(name)), bytes, length);
}

/* ---- reading ---- */

static bool is_good_name(const char *name, size_t length)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";

	if (length == strlen("manifest.json") && !memcmp(name, "manifest.json", length))
		return true;
	if (length <= 4 || length > INPUT_NAME_MAX || memcmp(name, "ust/", 4) || name[4] == '.')
		return false;
	for (size_t i = 4; i < length; i++)
		if (!name[i] || !strchr(letters, name[i]))
			return false;
	return true;
}

/* Read the entry at @at. Returns 1 for an entry, 0 at the end, or -EBADMSG, or -ENOMEM. */
static int list_entry(struct input *input, size_t *at)
{
	size_t left = input->nr_bytes - *at;
	struct entry_header header;
	struct input_file *file;
	const char *name;
	int rc;

	if (left < sizeof(header))
		return -EBADMSG;
	memcpy(&header, input->bytes + *at, sizeof(header));
	left -= sizeof(header);
	if (header.kind == ARCHIVE_END)
		return header.length == input->nr_files && !header.name_length &&
				       !header.packed_length && !header.checksum && !left
			       ? 0
			       : -EBADMSG;
	name = (const char *)input->bytes + *at + sizeof(header);
	if (header.kind > ARCHIVE_DEFINITIONS || header.name_length > left ||
	    header.packed_length > left - header.name_length ||
	    !is_good_name(name, header.name_length))
		return -EBADMSG;
	rc = input_add(input, name, header.name_length, &file);
	if (rc)
		return rc == -ENOMEM ? rc : -EBADMSG;
	file->kind = header.kind;
	file->length = header.length;
	file->at = *at + sizeof(header) + header.name_length;
	file->packed = header.packed_length;
	file->checksum = header.checksum;
	*at = (size_t)(file->at + file->packed);
	return 1;
}

/* Every name once, and in sum not more than such an archive may unpack to. */
static int check_files(const struct input *input)
{
	uint64_t limit = UNPACKED_MIN + UNPACKED_RATIO * (uint64_t)input->nr_bytes, sum = 0;

	for (size_t i = 0; i < input->nr_files; i++) {
		const struct input_file *file = &input->files[i];

		if (i && !strcmp(file->name, input->files[i - 1].name))
			return -EBADMSG;
		if (file->length > limit - sum)
			return -EFBIG;
		sum += file->length;
	}
	return 0;
}

int input_open_archive(struct input *ret_input, const uint8_t *bytes, size_t length,
		       struct errbuf *err)
{
	struct input input = {.directory = -1, .bytes = bytes, .nr_bytes = length};
	size_t at = MAGIC_BYTES;
	int rc;

	if (length < MAGIC_BYTES || memcmp(bytes, MAGIC, MAGIC_BYTES))
		return errbuf_set(err, -EBADMSG,
				  "It is neither a recording's directory nor an archive of one");
	do
		rc = list_entry(&input, &at);
	while (rc > 0);
	if (rc == -EBADMSG) {
		input.damage = "the archive is damaged or was cut off: what follows is missing";
		rc = 0;
	}
	input_sort(&input);
	rc = rc ? rc : check_files(&input);
	if (rc) {
		input_release(&input);
		return errbuf_set(err, rc,
				  rc == -EFBIG ? "The archive claims to hold impossibly much"
					       : "The archive's table is damaged");
	}
	*ret_input = input;
	return 0;
}

static int stored_unpack(const uint8_t *packed, const struct input_file *file, uint8_t *to)
{
	if (file->packed != file->length)
		return -EBADMSG;
	memcpy(to, packed, (size_t)file->length);
	return 0;
}

int archive_unpack(const struct input *input, const struct input_file *file, uint8_t **ret_bytes,
		   size_t *ret_length, struct errbuf *err)
{
	const uint8_t *packed = input->bytes + file->at;
	uint8_t *bytes = malloc((size_t)file->length + 1);
	int rc;

	if (!bytes)
		return errbuf_set(err, -ENOMEM, "%s: out of memory", file->name);
	if (file->kind == ARCHIVE_STORED)
		rc = stored_unpack(packed, file, bytes);
	else if (file->kind == ARCHIVE_SAMPLES)
		rc = columns_unpack(packed, (size_t)file->packed, bytes, (size_t)file->length);
	else if (file->kind == ARCHIVE_DEFINITIONS)
		rc = definitions_unpack(packed, (size_t)file->packed, bytes, (size_t)file->length);
	else
		rc = frame_unpack(packed, (size_t)file->packed, bytes, (size_t)file->length);
	if (!rc && file->kind != ARCHIVE_STORED &&
	    checksum(file->name, bytes, (size_t)file->length) != file->checksum)
		rc = -EBADMSG;
	if (rc) {
		free(bytes);
		return errbuf_set(err, rc, "%s: its part of the archive is damaged", file->name);
	}
	bytes[file->length] = 0;
	*ret_bytes = bytes;
	*ret_length = (size_t)file->length;
	return 0;
}

/* ---- writing ---- */

static int put_entry(struct bytes *out, const char *name, const uint8_t *bytes, size_t length)
{
	struct entry_header header = {.kind = ARCHIVE_FILE, .length = length};
	size_t at = out->length;
	int rc = -EBADMSG;

	header.name_length = (uint32_t)strlen(name);
	header.checksum = checksum(name, bytes, length);
	if (bytes_put(out, &header, sizeof(header)) || bytes_put(out, name, header.name_length))
		return -ENOMEM;
	if (!strncmp(name, "ust/slot_", strlen("ust/slot_"))) {
		header.kind = ARCHIVE_SAMPLES;
		rc = columns_pack(bytes, length, out);
	} else if (!strcmp(name, "ust/definitions")) {
		header.kind = ARCHIVE_DEFINITIONS;
		rc = definitions_pack(bytes, length, out);
	}
	if (rc == -EBADMSG) {
		header.kind = ARCHIVE_FILE;
		rc = bytes_put_frame(out, bytes, length);
	}
	header.packed_length = out->length - at - sizeof(header) - header.name_length;
	memcpy(out->at + at, &header, sizeof(header));
	return rc;
}

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
	while (length) {
		ssize_t done = write(fd, bytes, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes += done;
		length -= (size_t)done;
	}
	return 0;
}

/* Pack one file and write it; @packed is scratch. */
static int write_entry(int fd, const struct input *input, const struct input_file *file,
		       struct bytes *packed, struct errbuf *err)
{
	uint8_t *bytes;
	size_t length;
	int rc;

	rc = input_load(input, file, &bytes, &length, err);
	if (rc)
		return rc;
	packed->length = 0;
	rc = put_entry(packed, file->name, bytes, length);
	free(bytes);
	if (!rc)
		rc = write_all(fd, packed->at, packed->length);
	return rc ? errbuf_set(err, rc, "%s: %s", file->name, strerror(-rc)) : 0;
}

static int write_entries(int fd, const struct input *input, struct errbuf *err)
{
	struct entry_header last = {.kind = ARCHIVE_END};
	struct bytes packed = {0};
	int rc = write_all(fd, (const uint8_t *)MAGIC, MAGIC_BYTES);

	if (rc)
		errbuf_set(err, rc, "%s", strerror(-rc));
	for (size_t i = 0; i < input->nr_files && !rc; i++) {
		const struct input_file *file = &input->files[i];

		if (!is_good_name(file->name, strlen(file->name)))
			continue; /* not of the recording: an editor's, a file manager's */
		rc = write_entry(fd, input, file, &packed, err);
		last.length++;
	}
	free(packed.at);
	if (!rc) {
		rc = write_all(fd, (const uint8_t *)&last, sizeof(last));
		if (rc)
			errbuf_set(err, rc, "%s", strerror(-rc));
	}
	return rc;
}

/* What cannot be packed for being no directory may be what was packed before. */
static int say_no_directory(const char *path, int rc, struct errbuf *err)
{
	char magic[MAGIC_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length = fd < 0 ? -1 : pread(fd, magic, sizeof(magic), 0);

	if (fd >= 0)
		close(fd);
	if (length == MAGIC_BYTES && !memcmp(magic, MAGIC, MAGIC_BYTES))
		return errbuf_set(err, rc, "'%s' is an archive already: copy it as it is", path);
	return errbuf_set(err, rc, "'%s' is no recording: it is no directory", path);
}

int archive_write(const char *directory, int fd, struct errbuf *err)
{
	struct input input;
	int rc = input_open_directory(&input, directory, err);

	if (rc)
		return rc == -ENOTDIR ? say_no_directory(directory, rc, err) : rc;
	if (!input_find(&input, "manifest.json"))
		rc = errbuf_set(err, -ENOENT, "'%s' is no recording: it has no manifest.json",
				directory);
	else if (write_entries(fd, &input, err))
		rc = errbuf_prepend(err, -EIO, "Cannot write the archive");
	input_release(&input);
	return rc;
}

/* ---- extracting ---- */

static int extract_file(int directory, const struct input *input, const struct input_file *file,
			struct errbuf *err)
{
	uint8_t *bytes;
	size_t length;
	int fd, rc;

	rc = input_load(input, file, &bytes, &length, err);
	if (rc)
		return rc;
	fd = openat(directory, file->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0666);
	rc = fd < 0 ? -errno : write_all(fd, bytes, length);
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	free(bytes);
	return rc ? errbuf_set(err, rc, "Cannot write '%s': %s", file->name, strerror(-rc)) : 0;
}

static int extract_files(const struct input *input, const char *directory, struct errbuf *err)
{
	int fd, rc = 0;

	if (mkdir(directory, 0777))
		return errbuf_set(err, -errno, "Cannot make '%s': %s", directory, strerror(errno));
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || mkdirat(fd, "ust", 0777))
		rc = errbuf_set(err, -errno, "Cannot make '%s/ust': %s", directory,
				strerror(errno));
	for (size_t i = 0; i < input->nr_files && !rc; i++)
		rc = extract_file(fd, input, &input->files[i], err);
	if (fd >= 0)
		close(fd);
	return rc;
}

int archive_extract(const char *path, const char *directory, struct errbuf *err)
{
	struct input input;
	uint8_t *bytes;
	size_t length;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errbuf_set(err, -errno, "Cannot open '%s': %s", path, strerror(errno));
	rc = read_whole(fd, path, &bytes, &length, err);
	close(fd);
	if (rc)
		return rc;
	rc = input_open_archive(&input, bytes, length, err);
	if (!rc) {
		rc = extract_files(&input, directory, err);
		if (!rc && input.damage)
			rc = errbuf_set(err, -EBADMSG, "%s", input.damage);
		input_release(&input);
	}
	free(bytes);
	return rc ? errbuf_prepend(err, rc, "Cannot extract '%s'", path) : 0;
}
