/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * temponet_hint.h: tell scx_temponet about a task's deadlines.
 *
 * A declaration says: this thread needs `runtime` of CPU time within
 * `deadline` of each wake-up, and wakes up at most once per `period`.
 *
 *	char why[TEMPONET_REASON_MAX];
 *
 *	if (temponet_hint_set(0, 2 * 1000000, 5 * 1000000, 10 * 1000000, 0,
 *			      why, sizeof(why)))
 *		fprintf(stderr, "no deadline declared: %s\n", why);
 *
 * The daemon answers over a Unix socket and refuses what the machine cannot
 * carry, so no privilege is needed: see docs/guide/hints.md. A declaration lives as
 * long as its thread, survives execve() and is not inherited by children.
 *
 * The file needs nothing but libc and is clean as C11 and as C++. With
 * TEMPONET_HINT_TYPES_ONLY defined it needs not even that: the BPF half of the
 * scheduler and the Rust half get their types and limits from here too, so
 * that there is one source for all of them.
 */
#ifndef TEMPONET_HINT_H
#define TEMPONET_HINT_H

#define TEMPONET_HINT_VERSION 1

#ifndef TEMPONET_HINT_SOCKET
#define TEMPONET_HINT_SOCKET "/run/scx_temponet/hint.sock"
#endif
/* The same for root alone, whoever crowds the other one. */
#define TEMPONET_ROOT_SOCKET TEMPONET_HINT_SOCKET ".root"

/*
 * runtime <= deadline <= period. The scheduler follows one job per task at a
 * time, so a deadline beyond the next release has no job to belong to.
 *
 * The shortest period is SCHED_DEADLINE's default minimum: below it the
 * context switches cost more than the work. The longest lets the largest
 * possible wait stay well below the 20 s after which the kernel's watchdog
 * ejects a scheduler that leaves a task waiting. A runtime below 10 us is
 * smaller than what a switch and a cold cache cost, hence not a measurement.
 */
#define TEMPONET_PERIOD_MIN_NS 100000
#define TEMPONET_PERIOD_MAX_NS 10000000000
#define TEMPONET_RUNTIME_MIN_NS 10000

/* 0: normal … 3: mission critical; matters only when not all can be on time. */
#define TEMPONET_CRITICALITY_MAX 3

/* The value of the pinned task storage map. Names follow struct sched_attr. */
struct temponet_hint {
	unsigned long long runtime_ns;
	unsigned long long deadline_ns;
	unsigned long long period_ns;
	unsigned int criticality;
	unsigned int version; /* TEMPONET_HINT_VERSION */
};

/*
 * The wire: one SOCK_SEQPACKET packet per request, one per reply, in the byte
 * order of the machine, which is the same at both ends.
 */
#define TEMPONET_MAGIC 0x54504e48 /* "HNPT" in memory on x86 */
#define TEMPONET_OP_SET 1
#define TEMPONET_OP_CLEAR 2
#define TEMPONET_OP_GET 3
#define TEMPONET_REASON_MAX 208

struct temponet_request {
	unsigned int magic;
	unsigned short version;
	unsigned short op;
	int tid; /* as the daemon sees it: no other pid namespace */
	unsigned int reserved; /* 0 */
	struct temponet_hint hint; /* OP_SET only; else ignored */
};

struct temponet_reply {
	unsigned int magic;
	unsigned short version;
	unsigned short op;
	unsigned int status; /* 0, or a positive errno */
	unsigned int reserved;
	struct temponet_hint hint; /* OP_GET */
	char reason[TEMPONET_REASON_MAX]; /* one sentence, NUL-terminated */
};

#ifndef TEMPONET_HINT_TYPES_ONLY

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#elif !defined(__USE_MISC)
/* Strict -std=c11 hides it, and gettid() has no wrapper in older libcs. */
extern long syscall(long number, ...);
#endif

static inline int temponet_hint_fail_(int err, const char *text, char *reason,
				      size_t size)
{
	size_t len = strlen(text);

	if (reason && size) {
		if (len >= size)
			len = size - 1;
		memcpy(reason, text, len);
		reason[len] = '\0';
	}
	return err;
}

/* A connection, or -1 with errno. `size` counts the NUL. */
static inline int temponet_hint_connect_(const char *path, size_t size)
{
	struct sockaddr_un addr;
	struct timeval patience;
	int fd, err;

	memset(&addr, 0, sizeof(addr));
	addr.sun_family = AF_UNIX;
	if (size > sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr.sun_path, path, size);
	patience.tv_sec = 2;
	patience.tv_usec = 0;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* On a Unix socket the send timeout bounds connect() as well. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = errno;
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

static inline int temponet_hint_ask_(struct temponet_request *req,
				     struct temponet_reply *rep, char *reason,
				     size_t size)
{
	ssize_t got;
	int fd = -1, err, tries;

	if (geteuid() == 0)
		fd = temponet_hint_connect_(TEMPONET_ROOT_SOCKET,
					    sizeof(TEMPONET_ROOT_SOCKET));
	if (fd < 0)
		fd = temponet_hint_connect_(TEMPONET_HINT_SOCKET,
					    sizeof(TEMPONET_HINT_SOCKET));
	if (fd < 0)
		return temponet_hint_fail_(errno, "scx_temponet is not running",
					   reason, size);

	if (req->tid == 0)
		req->tid = (int)syscall(SYS_gettid);
	req->magic = TEMPONET_MAGIC;
	req->version = TEMPONET_HINT_VERSION;
	req->reserved = 0;

	/*
	 * A daemon that turns the connection away says why and hangs up, maybe
	 * before our request is out: whatever send() says, read the answer. A
	 * reset is reported once before what was queued ahead of it.
	 */
	do {
		got = send(fd, req, sizeof(*req), MSG_NOSIGNAL);
	} while (got < 0 && errno == EINTR);
	got = -1;
	for (tries = 0; got < 0 && tries < 8; tries++) {
		got = recv(fd, rep, sizeof(*rep), 0);
		if (got < 0 && errno != EINTR && errno != ECONNRESET)
			break;
	}
	err = got < 0 ? errno : EPROTO;
	close(fd);
	if (got != (ssize_t)sizeof(*rep) || rep->magic != TEMPONET_MAGIC)
		return temponet_hint_fail_(err, "no answer from scx_temponet",
					   reason, size);
	rep->reason[TEMPONET_REASON_MAX - 1] = '\0';
	return temponet_hint_fail_((int)rep->status, rep->reason, reason, size);
}

/*
 * All three return 0, or a positive errno with the sentence that explains it
 * in `reason` (which may be NULL). tid 0 means the calling thread.
 *
 * EINVAL: the numbers make no sense; ESRCH: no such task; EPERM: not yours;
 * EBUSY: admission refused; ENOENT, ECONNREFUSED: no daemon.
 */
static inline int temponet_hint_set(int tid, unsigned long long runtime_ns,
				    unsigned long long deadline_ns,
				    unsigned long long period_ns,
				    unsigned int criticality, char *reason,
				    size_t size)
{
	struct temponet_request req;
	struct temponet_reply rep;

	memset(&req, 0, sizeof(req));
	req.op = TEMPONET_OP_SET;
	req.tid = tid;
	req.hint.runtime_ns = runtime_ns;
	req.hint.deadline_ns = deadline_ns;
	req.hint.period_ns = period_ns;
	req.hint.criticality = criticality;
	req.hint.version = TEMPONET_HINT_VERSION;
	return temponet_hint_ask_(&req, &rep, reason, size);
}

/* Clearing a task that has declared nothing is not an error. */
static inline int temponet_hint_clear(int tid, char *reason, size_t size)
{
	struct temponet_request req;
	struct temponet_reply rep;

	memset(&req, 0, sizeof(req));
	req.op = TEMPONET_OP_CLEAR;
	req.tid = tid;
	return temponet_hint_ask_(&req, &rep, reason, size);
}

/* ENODATA: the task has declared nothing. */
static inline int temponet_hint_get(int tid, struct temponet_hint *hint,
				    char *reason, size_t size)
{
	struct temponet_request req;
	struct temponet_reply rep;
	int err;

	memset(&req, 0, sizeof(req));
	req.op = TEMPONET_OP_GET;
	req.tid = tid;
	err = temponet_hint_ask_(&req, &rep, reason, size);
	if (!err)
		*hint = rep.hint;
	return err;
}

#ifdef __cplusplus
}
#endif

#endif /* TEMPONET_HINT_TYPES_ONLY */
#endif /* TEMPONET_HINT_H */
