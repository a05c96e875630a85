/* SPDX-License-Identifier: MIT */
/*
 * The files of a recording, wherever they are: a directory, an archive, or memory (tests and
 * fuzzing). What reads a recording asks for files by name and gets bytes on the heap, so a file
 * that shrinks under us is a short read and never a SIGBUS.
 */
#ifndef PATHPROF_TOOL_TRACE_INPUT_H
#define PATHPROF_TOOL_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/errbuf.h"

#define INPUT_FILES_MAX (1u << 20) /* streams are slots of the recording's memory: thousands */
#define INPUT_NAME_MAX	255	   /* "ust/slot_0001" */

struct input_file {
	char *name;	   /* relative to the recording, '/' between */
	uint64_t length;   /* bytes when unpacked, as its source says */
	uint64_t at;	   /* archive: offset of its packed bytes */
	uint64_t packed;   /* archive: how many they are */
	uint64_t checksum; /* archive: of name and content */
	uint32_t kind;	   /* archive: enum archive_kind */
};

struct input {
	struct input_file *files; /* sorted by name */
	size_t nr_files;
	bool live;	      /* a recorder was at it when its files were listed */
	int directory;	      /* descriptor of the recording's directory, or -1 */
	const uint8_t *bytes; /* the archive, or NULL */
	size_t nr_bytes;
	uint8_t *owned;	    /* what input_release() frees of it */
	const char *damage; /* a sentence: what of the archive could not be listed; NULL */
};

/**
 * input_open_directory - list manifest.json and the regular files of ust/
 * input_open_archive - list an archive in memory; @bytes is borrowed
 * Return 0 or a negative errno with a sentence. input_release() frees.
 */
int input_open_directory(struct input *ret_input, const char *path, struct errbuf *err);
int input_open_archive(struct input *ret_input, const uint8_t *bytes, size_t length,
		       struct errbuf *err);
void input_release(struct input *input);

/** input_find - the file of that name, or NULL */
const struct input_file *input_find(const struct input *input, const char *name);

/**
 * input_load - the bytes of a file
 * @ret_bytes: on the heap, the caller's to free; one byte longer than @ret_length, and that is 0
 */
int input_load(const struct input *input, const struct input_file *file, uint8_t **ret_bytes,
	       size_t *ret_length, struct errbuf *err);

/** input_add - for those who fill an input: append a file; takes a copy of the name */
int input_add(struct input *input, const char *name, size_t name_length,
	      struct input_file **ret_file);

/** input_sort - for those who fill an input: by name, when all are in */
void input_sort(struct input *input);

/** read_whole - all of an open regular file; as input_load() */
int read_whole(int fd, const char *name, uint8_t **ret_bytes, size_t *ret_length,
	       struct errbuf *err);

#endif
