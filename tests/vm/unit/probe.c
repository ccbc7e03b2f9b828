/*
 * Tries what the unit should take away, a line each: NAME and "allowed" or why not.
 * NAME is the unit's setting.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST_CHILDREN = 700, /* more than TasksMax= allows */
	PAGE = 4096,
};

static void say(const char *name, int failed)
{
	const char *why = errno == EINTR ? "ended by a signal" : strerror(errno);

	printf("%s %s\n", name, failed ? why : "allowed");
	fflush(stdout);
}

static int create(const char *path, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0644), failed;

	if (fd < 0)
		return -1;
	failed = mode && fchmod(fd, mode);
	close(fd);
	unlink(path);
	return failed;
}

static int make_folder(const char *path)
{
	return mkdir(path, 0755) || rmdir(path);
}

static int datagram(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), sent;

	if (fd < 0)
		return -1;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sent = sendto(fd, "", 1, 0, (struct sockaddr *)&to, sizeof(to));
	close(fd);
	return sent != 1;
}

static int set_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return clock_settime(CLOCK_REALTIME, &now);
}

static int set_hostname(void)
{
	char name[64] = "";

	gethostname(name, sizeof(name) - 1);
	return sethostname(name, strlen(name));
}

static int become_realtime(void)
{
	struct sched_param param = { .sched_priority = 1 };

	return sched_setscheduler(0, SCHED_FIFO, &param);
}

/* In a child each, as they change who does it or may end it. */
static int as_child(int (*attempt)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(attempt() ? errno : 0);
	waitpid(pid, &status, 0);
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return errno;
}

static int be_traced(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0) < 0; }
static int other_personality(void) { return personality(PER_LINUX32) < 0; }
static int other_namespace(void) { return unshare(CLONE_NEWUTS); }
/* getpid() as a 32-bit program asks for it. */
static int foreign_call(void)
{
	int answer;

	__asm__ volatile("int $0x80" : "=a"(answer) : "a"(20) : "memory");
	errno = ENOSYS;
	return answer <= 0;
}

static int many_children(void)
{
	static pid_t children[MOST_CHILDREN];
	int count, failed = 0, why, i;

	for (count = 0; count < MOST_CHILDREN; count++) {
		children[count] = fork();
		if (!children[count]) {
			pause();
			_exit(0);
		}
		if (children[count] < 0) {
			failed = 1;
			why = errno;
			break;
		}
	}
	for (i = 0; i < count; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	if (failed)
		errno = why;
	return failed;
}

int main(void)
{
	struct rlimit limit;
	int prot = PROT_READ | PROT_WRITE | PROT_EXEC;

	say("RestrictAddressFamilies", socket(AF_INET, SOCK_DGRAM, 0) < 0);
	say("IPAddressDeny", datagram());
	say("MemoryDenyWriteExecute", mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	say("SystemCallFilter", as_child(be_traced));
	say("SystemCallArchitectures", as_child(foreign_call));
	say("LockPersonality", as_child(other_personality));
	say("RestrictNamespaces", as_child(other_namespace));
	say("RestrictRealtime", as_child(become_realtime));
	say("RestrictSUIDSGID", create("/run/scx_temponet/probe", 04755));
	say("ProtectSystem", create("/usr/probe", 0));
	say("ProtectSystem/etc", create("/etc/probe", 0));
	say("ProtectSystem/var", create("/var/probe", 0));
	say("ProtectHome", access("/root/at-home", R_OK));
	say("TemporaryFileSystem", access("/tmp/of-others", R_OK));
	say("PrivateDevices", access("/dev/ttyS0", F_OK));
	say("ProtectClock", set_clock());
	say("ProtectHostname", set_hostname());
	say("ProtectKernelLogs", klogctl(3, (char[16]){ 0 }, 16) < 0);
	/* Of a module that is none: the kernel looks at who asks first. */
	say("ProtectKernelModules", syscall(SYS_init_module, "", 0, "") && errno == EPERM);
	say("ProtectControlGroups", make_folder("/sys/fs/cgroup/probe"));
	say("TasksMax", many_children());
	errno = EPERM;
	say("NoNewPrivileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));

	/* And what it should leave. */
	say("+RuntimeDirectory", create("/run/scx_temponet/probe", 0));
	say("+RuntimeDirectory/scx", create("/var/run/scx/probe", 0));
	say("+ReadWritePaths", make_folder("/sys/fs/bpf/probe"));
	say("+LimitNICE", setpriority(PRIO_PROCESS, 0, -20));
	say("+LimitMEMLOCK", mlockall(MCL_CURRENT));
	errno = EMFILE;
	say("+LimitNOFILE", getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur != 65536);
	return 0;
}
