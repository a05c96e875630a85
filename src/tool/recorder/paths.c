/* SPDX-License-Identifier: MIT */
/*
 * Where things lie.
 *
 *   build tree   build/src/tool/cli/pathprof (or build/pathprof) -> build/src/agent/AGENT
 *   installed    PREFIX/bin/pathprof -> PREFIX/lib/pathprof/AGENT, PREFIX/lib/TRIPLET/pathprof/...
 */
#include "tool/recorder/recorder.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGENT_FILE "libpathprof-agent.so"

static bool is_executable_file(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

/* The first existing file of a pattern, resolved. */
static bool find_file(const char *base, const char *pattern, char ret_path[PATH_MAX])
{
	char full[PATH_MAX];
	glob_t found;
	bool ok = false;

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", base, pattern) >= sizeof(full))
		return false;
	if (!glob(full, GLOB_NOSORT, NULL, &found)) {
		ok = realpath(found.gl_pathv[0], ret_path) != NULL;
		globfree(&found);
	}
	return ok;
}

int paths_agent(char ret_path[PATH_MAX], struct errbuf *err)
{
	static const char *const patterns[] = {
		"../../agent/" AGENT_FILE,	 "src/agent/" AGENT_FILE,
		"../lib/pathprof/" AGENT_FILE,	 "../lib/*/pathprof/" AGENT_FILE,
		"../lib64/pathprof/" AGENT_FILE,
	};
	const char *override = getenv(AGENT_VARIABLE);
	char base[PATH_MAX], path[PATH_MAX];
	bool found = false;
	ssize_t length;

	length = readlink("/proc/self/exe", base, sizeof(base) - 1);
	if (length < 0)
		return errbuf_set(err, -errno, "Cannot read /proc/self/exe: %s; is /proc mounted?",
				  strerror(errno));
	base[length] = 0;
	*strrchr(base, '/') = 0;
	if (override)
		found = realpath(override, path) != NULL;
	for (size_t i = 0; !override && !found && i < sizeof(patterns) / sizeof(patterns[0]); i++)
		found = find_file(base, patterns[i], path);
	if (!found)
		return errbuf_set(err, -ENOENT,
				  "Cannot find the agent, " AGENT_FILE
				  ", beside or under the prefix "
				  "of %s: build or install it",
				  base);
	/* The loader splits LD_PRELOAD at both, and knows no quoting. */
	if (strpbrk(path, ": "))
		return errbuf_set(
			err, -EINVAL,
			"The agent's path, %s, holds a space or a colon, which LD_PRELOAD "
			"cannot: move or install pathprof elsewhere",
			path);
	memcpy(ret_path, path, strlen(path) + 1);
	return 0;
}

int paths_command(const char *name, char ret_path[PATH_MAX])
{
	const char *path = getenv("PATH"), *end;
	char candidate[PATH_MAX];
	int result = -ENOENT;

	if (strchr(name, '/')) {
		if (access(name, F_OK))
			return errno == EACCES ? -EACCES : -ENOENT;
		if (!is_executable_file(name))
			return -EACCES;
		snprintf(ret_path, PATH_MAX, "%s", name);
		return 0;
	}
	if (!path)
		path = "/bin:/usr/bin"; /* as execvp() does */
	for (; *name; path = end + 1) {
		end = strchrnul(path, ':');
		if ((size_t)snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)(end - path),
				     path, end > path ? "/" : "", name) < sizeof(candidate) &&
		    !access(candidate, F_OK)) {
			if (is_executable_file(candidate)) {
				memcpy(ret_path, candidate, strlen(candidate) + 1);
				return 0;
			}
			result = -EACCES;
		}
		if (!*end)
			break;
	}
	return result;
}
