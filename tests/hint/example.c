/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declares 2 ms of work within 5 ms, every 10 ms, for the calling thread or
 * the one given, reads it back and clears it (docs/guide/hints.md). The tests compile
 * it as C11 and as C++ and run it as two users.
 */
#include <stdio.h>
#include <stdlib.h>
#include "temponet_hint.h"

int main(int argc, char **argv)
{
	int tid = argc > 1 ? atoi(argv[1]) : 0; /* 0: this thread */
	char why[TEMPONET_REASON_MAX];
	struct temponet_hint hint;
	int err;

	err = temponet_hint_set(tid, 2000000, 5000000, 10000000, 0, why,
				sizeof(why));
	if (err) {
		/* Not fatal: without a declaration deadlines are estimated. */
		fprintf(stderr, "no deadline declared: %s\n", why);
		return err;
	}
	err = temponet_hint_get(tid, &hint, why, sizeof(why));
	if (err)
		return err;
	printf("declared %llu ns every %llu ns\n", hint.runtime_ns,
	       hint.period_ns);
	return temponet_hint_clear(tid, why, sizeof(why));
}
