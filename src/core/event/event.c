/* SPDX-License-Identifier: MIT */
/* Keys and sentences of the vocabulary. */
#include "core/event/event.h"

#include <stddef.h>

struct reason {
	const char *key;
	const char *sentence;
};

static const struct reason losses[] = {
#define X(id, key, sentence) {key, sentence},
	LOSS_REASONS(X)
#undef X
};

static const struct reason degradations[] = {
#define X(id, key, sentence) {key, sentence},
	DEGRADED_REASONS(X)
#undef X
};

const char *loss_key(unsigned int reason)
{
	return reason < NR_LOSS_REASONS ? losses[reason].key : NULL;
}

const char *loss_sentence(unsigned int reason)
{
	return reason < NR_LOSS_REASONS ? losses[reason].sentence : NULL;
}

const char *degraded_key(unsigned int reason)
{
	return reason < NR_DEGRADED_REASONS ? degradations[reason].key : NULL;
}

const char *degraded_sentence(unsigned int reason)
{
	return reason < NR_DEGRADED_REASONS ? degradations[reason].sentence : NULL;
}

const char *state_key(unsigned int state)
{
	static const char *const keys[] = {
#define X(id, key) key,
		SAMPLE_STATES(X)
#undef X
	};

	return state < NR_SAMPLE_STATES ? keys[state] : NULL;
}
