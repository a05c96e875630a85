/* SPDX-License-Identifier: MIT */
#include "tool/events/pmu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES  256
#define ALIASES_MAX 4 /* an event's name in sysfs stands for terms; those for none, usually */

/* An encoding under way. */
struct pmu {
	const char *root;
	char device[64];
	struct perf_kind kind;
	unsigned int nr_aliases;
};

/* The first line of a file of the PMU. Returns 0 or a negative errno. */
static int read_line(const struct pmu *pmu, const char *folder, const char *file,
		     char text[TEXT_BYTES])
{
	char path[PATH_MAX];
	ssize_t length;
	int fd;

	if (strchr(file, '/') || file[0] == '.' ||
	    (size_t)snprintf(path, sizeof(path), "%s/%s/%s%s", pmu->root, pmu->device, folder,
			     file) >= sizeof(path))
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read(fd, text, TEXT_BYTES - 1);
	close(fd);
	if (length <= 0)
		return -EIO;
	text[length] = 0;
	text[strcspn(text, "\n")] = 0;
	return 0;
}

/* One of the words that perf_event_open(2) takes. Returns false: it is none. */
static bool find_word(struct pmu *pmu, const char *name, size_t length, uint64_t **ret_word)
{
	if (length == 6 && !strncmp(name, "config", length))
		*ret_word = &pmu->kind.config;
	else if (length == 7 && !strncmp(name, "config1", length))
		*ret_word = &pmu->kind.config1;
	else if (length == 7 && !strncmp(name, "config2", length))
		*ret_word = &pmu->kind.config2;
	else
		return false;
	return true;
}

/*
 * Spread a value's bits over the ranges of a format, lowest first: "config:0-7,32-35". Returns
 * false where it does not fit, or where the format is none.
 */
static bool put_bits(struct pmu *pmu, const char *format, uint64_t value)
{
	size_t length = strcspn(format, ":");
	const char *at = format + length;
	uint64_t *word;

	if (!find_word(pmu, format, length, &word))
		return false;
	while (*at == ':' || *at == ',') {
		unsigned long low = strtoul(at + 1, (char **)&at, 10), high = low;

		if (*at == '-')
			high = strtoul(at + 1, (char **)&at, 10);
		if (low > high || high > 63)
			return false;
		for (unsigned long bit = low; bit <= high; bit++, value >>= 1) {
			*word &= ~(1ull << bit);
			*word |= (value & 1) << bit;
		}
	}
	return !*at && !value;
}

static bool parse_value(const char *text, uint64_t *ret_value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_value = strtoull(text, &end, text[1] == 'x' ? 16 : 10);
	return !errno && !*end;
}

static int put_terms(struct pmu *pmu, char *terms, struct errbuf *err);

/* One term: "event=0xc2", "config=0x1c2", "edge", or the name of an event. */
static int put_term(struct pmu *pmu, char *term, struct errbuf *err)
{
	char *equals = strchr(term, '='), format[TEXT_BYTES];
	uint64_t value = 1, *word;

	if (equals)
		*equals++ = 0;
	if (equals && !parse_value(equals, &value))
		return errbuf_set(err, -ENOENT, "'%s=%s' of PMU %s: a number is wanted", term,
				  equals, pmu->device);
	if (equals && find_word(pmu, term, strlen(term), &word)) {
		*word = value;
		return 0;
	}
	if (!read_line(pmu, "format/", term, format)) {
		if (put_bits(pmu, format, value))
			return 0;
		return errbuf_set(err, -ENOENT, "'%s=%#llx' of PMU %s does not fit its field (%s)",
				  term, (unsigned long long)value, pmu->device, format);
	}
	if (!equals && !read_line(pmu, "events/", term, format) && pmu->nr_aliases++ < ALIASES_MAX)
		return put_terms(pmu, format, err);
	return errbuf_set(err, -ENOENT, "PMU %s has neither a field nor an event '%s': see %s/%s",
			  pmu->device, term, pmu->root, pmu->device);
}

static int put_terms(struct pmu *pmu, char *terms, struct errbuf *err)
{
	int code = 0;

	for (char *next; terms && *terms && !code; terms = next) {
		next = strchr(terms, ',');
		if (next)
			*next++ = 0;
		code = put_term(pmu, terms, err);
	}
	return code;
}

int pmu_encode(const char *root, const char *name, struct perf_kind *ret_kind, struct errbuf *err)
{
	struct pmu pmu = {.root = root};
	size_t device = strcspn(name, "/"), terms;
	char text[TEXT_BYTES], list[TEXT_BYTES];
	const char *modifiers;
	int code;

	terms = name[device] ? strcspn(name + device + 1, "/") : 0;
	if (!terms || device >= sizeof(pmu.device) || terms >= sizeof(list))
		return errbuf_set(err, -ENOENT, "'%s' is no event: see 'pathprof list'", name);
	memcpy(pmu.device, name, device);
	memcpy(list, name + device + 1, terms);
	list[terms] = 0;
	modifiers = name + device + 1 + terms;
	modifiers += *modifiers == '/';
	if (modifiers[strspn(modifiers, "uk")])
		return errbuf_set(err, -ENOENT, "'%s': only u and k may stand behind the terms",
				  name);
	code = read_line(&pmu, "", "type", text);
	if (code)
		return errbuf_set(err, -ENODEV, "There is no PMU '%s' here: see %s", pmu.device,
				  root);
	pmu.kind.type = (uint32_t)strtoul(text, NULL, 10);
	code = put_terms(&pmu, list, err);
	if (code)
		return code;
	if (*modifiers) {
		pmu.kind.exclude_user = !strchr(modifiers, 'u');
		pmu.kind.exclude_kernel = !strchr(modifiers, 'k');
	}
	*ret_kind = pmu.kind;
	return 0;
}
