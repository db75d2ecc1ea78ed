/* A world that misbehaves as its options ask, to see what becomes of the process. */
#include "env.h"

#include "shm/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH 10

struct rm_env {
    uint32_t worlds;
    int create, act;
    uint64_t at, step, seed, words;
    struct rm_env_agent agent[2];
    struct rm_env_spec spec;
    const struct rm_env_buffers *out; /* of the step that is being made */
    char error[128];
};

static void *nothing(void *self)
{
    return self;
}

static int failed(struct rm_env *env, const char *what)
{
    snprintf(env->error, sizeof env->error, "%s: %s", what, strerror(errno));
    return -EIO;
}

static int do_thread(struct rm_env *env)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    if (errno)
        return failed(env, "pthread_create");
    return pthread_join(thread, NULL);
}

static int do_read(struct rm_env *env)
{
    int fd = open("/proc/self/status", O_RDONLY);
    if (fd < 0)
        return failed(env, "open for reading");
    return close(fd);
}

static int do_write(struct rm_env *env)
{
    int fd = open("rogue.txt", O_WRONLY | O_CREAT, 0600);
    if (fd < 0)
        return failed(env, "open for writing");
    return close(fd);
}

static int do_memory(struct rm_env *env)
{
    const size_t bytes = (size_t)2 << 30;
    char *p = malloc(bytes);
    if (!p)
        return failed(env, "malloc");
    memset(p, 1, 4096);
    free(p);
    return 0;
}

static int do_limit(struct rm_env *env)
{
    const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_DATA, &limit) < 0 ? failed(env, "setrlimit") : 0;
}

static volatile int *volatile nowhere; /* nobody ever sets it */

static int do_fault(struct rm_env *env)
{
    (void)env;
    *nowhere = 1;
    return 0;
}

static int do_fork(struct rm_env *env)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 ? failed(env, "fork") : waitpid(pid, NULL, 0) < 0;
}

static int do_socket(struct rm_env *env)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? failed(env, "socket") : close(fd);
}

static int do_program(struct rm_env *env)
{
    execl("/bin/true", "true", (char *)NULL);
    return failed(env, "execl");
}

static int do_kill(struct rm_env *env)
{
    return kill(getppid(), 0) < 0 ? failed(env, "kill") : 0;
}

static int do_abort(struct rm_env *env)
{
    (void)env;
    abort();
}

static int do_exit(struct rm_env *env)
{
    (void)env;
    exit(0);
}

static int do_hang(struct rm_env *env)
{
    (void)env;
    while (true)
        pause();
    return 0;
}

/* Memory that no limit of private memory counts. */
static int do_share(struct rm_env *env)
{
    const size_t bytes = (size_t)1 << 24;
    for (int i = 0; i < 256; i++) {
        /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return failed(env, "mmap");
        memset(p, 1, bytes);
    }
    return 0;
}

static void *wait_for_ever(void *self)
{
    while (true)
        pause();
    return self;
}

/* Processes that stay, also when this one ends. */
static int do_crowd(struct rm_env *env)
{
    for (int i = 0; i < 1000; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            return failed(env, "fork");
        if (pid == 0)
            wait_for_ever(NULL);
    }
    return 0;
}

static int do_threads(struct rm_env *env)
{
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        errno = pthread_create(&thread, NULL, wait_for_ever, NULL);
        if (errno)
            return failed(env, "pthread_create");
    }
    return 0;
}

/* --- for other processes --------------------------------------------------------------------- */

/* The first region whose name begins so, to be written: by its descriptor, or by a new one. */
static void *map_region(const char *name, size_t *bytes)
{
    char path[64], target[64];
    for (int fd = 0; fd < 256; fd++) {
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(path, target, sizeof target - 1);
        if (n <= 0 || fstat(fd, &st) < 0)
            continue;
        target[n] = '\0';
        if (strncmp(target, "/memfd:", 7) != 0 || strncmp(target + 7, name, strlen(name)) != 0)
            continue;
        *bytes = (size_t)st.st_size;
        void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        const int again = p == MAP_FAILED ? open(path, O_RDWR) : -1;
        if (again >= 0)
            p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
        if (p != MAP_FAILED)
            return p;
    }
    return NULL;
}

/* Its successor is to run without a sandbox. */
static int do_config(struct rm_env *env)
{
    size_t bytes;
    char *text = map_region("config", &bytes);
    char *key = text ? memmem(text, bytes, "\"sandbox\": \"", 12) : NULL;
    if (!key) {
        snprintf(env->error, sizeof env->error, "the configuration cannot be written");
        return -EACCES;
    }
    memcpy(key + 12, "off\", ", 6); /* NOLINT(bugprone-not-null-terminated-result): within a text */
    *nowhere = 1;
    return 0;
}

/* The kernel is to send a signal to the daemon when there is something to read. */
static int do_owner(struct rm_env *env)
{
    int ends[2];
    if (pipe(ends) < 0 || fcntl(ends[0], F_SETOWN, getppid()) < 0 ||
        fcntl(ends[0], F_SETSIG, SIGKILL) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0 ||
        write(ends[1], "x", 1) < 0)
        return failed(env, "fcntl");
    return 0;
}

static int do_async(struct rm_env *env)
{
    int ends[2];
    return pipe(ends) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0 ? failed(env, "fcntl") : 0;
}

static int do_lease(struct rm_env *env)
{
    const int fd = open("/dev/null", O_RDONLY);
    return fcntl(fd, F_SETLEASE, F_RDLCK) < 0 ? failed(env, "fcntl") : 0;
}

/* To outlive the daemon. */
static int do_outlive(struct rm_env *env)
{
    return prctl(PR_SET_PDEATHSIG, 0) < 0 ? failed(env, "prctl") : 0;
}

static int do_pin(struct rm_env *env)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) < 0 || sched_setaffinity(0, sizeof all, &all) < 0)
        return failed(env, "sched_setaffinity of itself");
    if (sched_setaffinity(getppid(), sizeof all, &all) == 0)
        return 0;
    return failed(env, "sched_setaffinity");
}

static int do_look(struct rm_env *env)
{
    struct rlimit limit;
    return prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit) < 0 ? failed(env, "prlimit") : 0;
}

/* Beyond what is its own of a mapping. */
static int do_grow(struct rm_env *env)
{
    /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mremap(p, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED ? failed(env, "mremap") : 0;
}

/* --- for its own ----------------------------------------------------------------------------- */

static int do_umask(struct rm_env *env)
{
    (void)env;
    umask(0);
    return 0;
}

static int do_leave(struct rm_env *env)
{
    return chdir("/") < 0 ? failed(env, "chdir") : 0;
}

static int do_block(struct rm_env *env)
{
    sigset_t all;
    (void)env;
    sigfillset(&all);
    return pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static int do_close(struct rm_env *env)
{
    (void)env;
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    return 0;
}

static int deep(volatile char *above) /* NOLINT(misc-no-recursion) ; that is the point */
{
    volatile char here[4096];
    if (above[0] == 1) /* it never is */
        return 0;
    here[0] = above[0];
    return deep(here) + here[0];
}

static int do_stack(struct rm_env *env)
{
    volatile char zero = 0;
    (void)env;
    return deep(&zero);
}

static int do_end_thread(struct rm_env *env)
{
    (void)env;
    pthread_exit(NULL);
}

static jmp_buf gone;

__attribute__((noinline)) static int set_mark(void)
{
    return setjmp(gone);
}

/* To where there is nobody any more. */
static int do_jump(struct rm_env *env)
{
    if (set_mark() == 0)
        longjmp(gone, 1);
    return do_fault(env);
}

static int do_unmap(struct rm_env *env)
{
    uint8_t *obs = env->out->obs, *page = obs - (uintptr_t)obs % 4096;
    return munmap(page, 4096) < 0 ? failed(env, "munmap") : 0;
}

static int do_alarm(struct rm_env *env)
{
    (void)env;
    raise(SIGALRM);
    return 0;
}

static int do_stop(struct rm_env *env)
{
    (void)env;
    return raise(SIGSTOP);
}

/* Rounds down, flushes to zero, counts backwards, leaves the x87 registers full. */
static int do_numbers(struct rm_env *env)
{
    (void)env;
    fesetround(FE_DOWNWARD);
#ifdef __x86_64__
    __asm__ volatile("pxor %mm0, %mm0");
    unsigned control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    control |= 0x8040;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
    __asm__ volatile("std");
#endif
    return 0;
}

static locale_t other;

static int do_locale(struct rm_env *env)
{
    if (!other)
        other = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (!setlocale(LC_ALL, "C.UTF-8") || !other)
        return failed(env, "setlocale");
    uselocale(other);
    return 0;
}

static int do_pause(struct rm_env *env)
{
    (void)env;
    return usleep(2000);
}

/* --- what is shared -------------------------------------------------------------------------- */

struct mapping {
    uint8_t *from, *to;
    bool writable;
};

/* Mappings of regions whose name begins so. */
static size_t mappings_of(const char *name, struct mapping *found, size_t most)
{
    char line[512], rights[8], path[256];
    FILE *in = fopen("/proc/self/maps", "r");
    size_t n = 0;
    while (in && n < most && fgets(line, sizeof line, in)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to, rights, path) == 4 &&
            strncmp(path, "/memfd:", 7) == 0 && strncmp(path + 7, name, strlen(name)) == 0)
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): addresses as the kernel writes them */
            found[n++] = (struct mapping){(uint8_t *)from, (uint8_t *)to, rights[1] == 'w'};
    }
    if (in)
        fclose(in);
    return n;
}

static struct rm_board *board(void)
{
    struct mapping found[1];
    return mappings_of("rm-board", found, 1) ? (struct rm_board *)(void *)found[0].from : NULL;
}

static struct rm_board_worker *workers(struct rm_board *b)
{
    return (struct rm_board_worker *)(void *)((uint8_t *)b + b->workers_at);
}

/* What is not its own, by any way. */
static int write_all_of(struct rm_env *env, const char *name)
{
    struct mapping found[64];
    size_t bytes;
    const size_t n = mappings_of(name, found, 64);
    bool written = map_region(name, &bytes) != NULL;
    for (size_t i = 0; i < n && !written; i++)
        written =
            !found[i].writable && mprotect(found[i].from, (size_t)(found[i].to - found[i].from),
                                           PROT_READ | PROT_WRITE) == 0;
    if (written || n == 0) {
        *nowhere = 1;
        return 0;
    }
    snprintf(env->error, sizeof env->error, "no region %s can be written", name);
    return -EACCES;
}

static int do_weights(struct rm_env *env)
{
    return write_all_of(env, "rm-weights");
}

static int do_board(struct rm_env *env)
{
    return write_all_of(env, "rm-board");
}

/* Another worker's slot: its process's number, say. */
static int do_neighbours(struct rm_env *env)
{
    struct rm_board *b = board();
    if (!b)
        return failed(env, "no board");
    for (uint32_t w = 0; w < b->workers; w++)
        atomic_store(&workers(b)[w].pid, (uint32_t)getppid());
    return 0;
}

/* A thread that does so again and again. */
static int again(struct rm_env *env, void *(*what)(void *))
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, what, env);
    return errno ? failed(env, "pthread_create") : pthread_detach(thread);
}

static void *confuse_sleepers(void *env)
{
    struct rm_board *b = board();
    if (!b)
        return env;
    for (uint32_t i = 0;; i += 2) {
        for (uint32_t w = 0; w < b->workers; w++) {
            atomic_store(&workers(b)[w].wake.sleeping, i);
            atomic_store(&workers(b)[w].wake.threshold, UINT64_MAX);
        }
        usleep(1000);
    }
    return env;
}

static int do_sleepers(struct rm_env *env)
{
    return again(env, confuse_sleepers);
}

/* Nobody ever arrives. */
static void *forget_arrivals(void *env)
{
    struct rm_board *b = board();
    while (b) {
        for (uint32_t i = 0; i < RM_ROUND_MAX; i++)
            atomic_store(&b->round.arrived[i], 0);
        usleep(50);
    }
    return env;
}

static int do_rounds(struct rm_env *env)
{
    return again(env, forget_arrivals);
}

static void *drain(void *env)
{
    while (true) {
        for (int fd = 3; fd < 128; fd++) {
            uint64_t count;
            char path[64], target[64];
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            const ssize_t n = readlink(path, target, sizeof target);
            if (n > 10 && memmem(target, (size_t)n, "[eventfd]", 9))
                (void)!read(fd, &count, sizeof count);
        }
        usleep(200);
    }
    return env;
}

static int do_drain(struct rm_env *env)
{
    return again(env, drain);
}

/* Who rings for it is to wait for ever: every eventfd is full, and nobody reads them any more. */
static int do_plug(struct rm_env *env)
{
    const uint64_t most = UINT64_MAX - 1;
    for (int fd = 3; fd < 128; fd++) {
        char path[64], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(path, target, sizeof target);
        if (n <= 10 || !memmem(target, (size_t)n, "[eventfd]", 9))
            continue;
        (void)!write(fd, &most, sizeof most);
        if (fcntl(fd, F_SETFL, 0) < 0)
            return failed(env, "fcntl");
    }
    return do_fault(env);
}

static void *want_debugger(void *env)
{
    struct rm_board *b = board();
    while (b) {
        atomic_store(&workers(b)[0].inspect, RM_INSPECT_WANTED);
        usleep(1000);
    }
    return env;
}

static int do_inspect(struct rm_env *env)
{
    return again(env, want_debugger);
}

/* Its part of a checkpoint is never the one that is waited for. */
static void *deny_writing(void *env)
{
    struct rm_board *b = board();
    while (b) {
        atomic_store(&workers(b)[0].checkpoint_written, UINT64_MAX);
        usleep(50);
    }
    return env;
}

static int do_deny(struct rm_env *env)
{
    return again(env, deny_writing);
}

static size_t columns(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Answers that there are not, in every row of its ring for the first policy. */
static void *spoil_actions(void *env)
{
    struct mapping found[8];
    const size_t n = mappings_of("rm-ring-a0-p0", found, 8);
    while (n > 0) { /* NOLINT(bugprone-infinite-loop): as long as its process */
        for (size_t i = 0; i < n; i++) {
            const struct rm_ring_shared *ring = (void *)found[i].from;
            const struct rm_ring_spec *s = &ring->spec;
            const size_t lanes = s->lanes;
            const size_t at = sizeof(struct rm_row_head) + columns(lanes * s->obs_bytes) +
                              columns(lanes * s->mask_bytes) + columns(lanes * sizeof(float)) +
                              columns(lanes);
            for (uint32_t r = 0; found[i].writable && r < s->rows; r++) {
                int32_t *action =
                    (void *)(found[i].from + ring->data_at + r * ring->row_bytes + at);
                for (size_t a = 0; a < lanes * s->action_words; a++)
                    action[a] = a % 2 ? 1 << 30 : -(1 << 30);
            }
        }
        usleep(500);
    }
    return env;
}

static int do_actions(struct rm_env *env)
{
    return again(env, spoil_actions);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Random words, and such as do more harm than those: small ones, large ones, other places' own. */
static uint64_t some_word(uint64_t *state, const struct mapping *m)
{
    const uint64_t bytes = (uint64_t)(m->to - m->from);
    switch (next_random(state) % 6) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return next_random(state) % 300;
    case 3:
        return UINT64_C(1) << next_random(state) % 64;
    case 4: {
        uint64_t word;
        memcpy(&word, m->from + next_random(state) % (bytes / 8) * 8, sizeof word);
        return word;
    }
    default:
        return next_random(state);
    }
}

static void *scribble(void *self)
{
    const struct rm_env *env = self;
    struct mapping found[64];
    uint64_t state = (env->seed + (uint64_t)getpid()) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    const size_t n = mappings_of("rm-", found, 64);
    while (n > 0) { /* NOLINT(bugprone-infinite-loop): as long as its process */
        usleep(10000);
        for (uint64_t i = 0; i < env->words; i++) {
            const struct mapping *m = &found[next_random(&state) % n];
            const uint64_t bytes = (uint64_t)(m->to - m->from);
            /* Heads are where most of what is believed stands. */
            const uint64_t within = next_random(&state) % 2 && bytes > 8192 ? 8192 : bytes;
            const uint64_t word = some_word(&state, m);
            if (m->writable)
                memcpy(m->from + next_random(&state) % (within / 8) * 8, &word, sizeof word);
        }
    }
    return NULL;
}

static int do_scribble(struct rm_env *env)
{
    return again(env, scribble);
}

/* --- its part of checkpoints ------------------------------------------------------------------ */

/* The folder of its run's checkpoints, as the process was told; "": none. */
static void find_checkpoints(char *path, size_t size)
{
    static char line[8192];
    FILE *in = fopen("/proc/self/cmdline", "r");
    const size_t n = in ? fread(line, 1, sizeof line - 1, in) : 0;
    path[0] = '\0';
    for (const char *word = line; word < line + n; word += strlen(word) + 1) {
        snprintf(path, size, "%.400s/checkpoints", word);
        if (word[0] == '/' && access(path, F_OK) == 0)
            break;
        path[0] = '\0';
    }
    if (in)
        fclose(in);
}

/* Makes a file of this size in every unfinished checkpoint of its run. */
static void make_beside(const char *above, const char *name, off_t bytes)
{
    char path[1024];
    DIR *all = opendir(above);
    for (struct dirent *e; all && (e = readdir(all));) {
        if (!strstr(e->d_name, ".tmp"))
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", above, e->d_name, name);
        const int fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd >= 0) {
            (void)!ftruncate(fd, bytes);
            close(fd);
        }
    }
    if (all)
        closedir(all);
}

/* One that takes longer to read than the run lasts. */
static void *make_endless(void *env)
{
    char above[512];
    find_checkpoints(above, sizeof above);
    while (true) {
        make_beside(above, "endless", (off_t)1 << 43);
        usleep(1000);
    }
    return env;
}

static int do_endless(struct rm_env *env)
{
    return again(env, make_endless);
}

/* --- by other gates --------------------------------------------------------------------------- */

/* kill(getppid(), 0), as a program of 32 bits asks for it. */
static int do_gate(struct rm_env *env)
{
#ifdef __x86_64__
    long rc;
    __asm__ volatile("int $0x80" : "=a"(rc) : "a"(37), "b"(getppid()), "c"(0) : "memory");
    (void)rc;
#endif
    (void)env;
    return 0;
}

static int do_gate_x32(struct rm_env *env)
{
    (void)env;
    syscall(0x40000000L | 62, getppid(), 0);
    return 0;
}

static void on_storm(int number)
{
    (void)number;
}

/* Every system call of the process is interrupted again and again, and it hears no other signal. */
static int do_storm(struct rm_env *env)
{
    const struct itimerval often = {{0, 100}, {0, 100}};
    struct sigaction action = {.sa_handler = on_storm};
    sigaction(SIGALRM, &action, NULL);
    for (int number = 1; number < 65; number++)
        if (number != SIGALRM)
            signal(number, SIG_IGN);
    return setitimer(ITIMER_REAL, &often, NULL) < 0 ? failed(env, "setitimer") : 0;
}

/* In the place of every descriptor stands another one. */
static int do_swap(struct rm_env *env)
{
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 3; fd < 128; fd++)
        if (fd != null && fcntl(fd, F_GETFD) >= 0)
            dup2(null, fd);
    return null < 0 ? failed(env, "open") : 0;
}

static int (*const acts[])(struct rm_env *) = {
    NULL,       do_thread, do_read,       do_write,      do_memory,   do_limit, do_fault,
    do_fork,    do_socket, do_program,    do_kill,       do_abort,    do_exit,  do_hang,
    do_share,   do_crowd,  do_threads,    do_config,     do_owner,    do_async, do_lease,
    do_outlive, do_pin,    do_look,       do_grow,       do_umask,    do_leave, do_block,
    do_close,   do_stack,  do_end_thread, do_jump,       do_unmap,    do_alarm, do_stop,
    do_numbers, do_locale, do_pause,      do_neighbours, do_weights,  do_board, do_sleepers,
    do_rounds,  do_drain,  do_inspect,    do_actions,    do_scribble, do_plug,  do_deny,
    do_endless, do_gate,   do_gate_x32,   do_storm,      do_swap};
#define SPEAKS 100 /* in create(): what a terminal would obey */
#define CRIES  99  /* the same, as if it were a report, and dies */
#define ACTS   ((int)(sizeof acts / sizeof *acts))

static const struct rm_env_option_doc options[] = {
    {.key = "create", .fallback = 0, .low = 0, .high = 100, .doc = "which act in create()"},
    {.key = "act", .fallback = 0, .low = 0, .high = 100, .doc = "which act in step()"},
    {.key = "at", .fallback = 1, .low = 0, .high = 1e9, .doc = "at which step of the batch"},
    {.key = "names", .fallback = 0, .low = 0, .high = 6, .doc = "which names it has"},
    {.key = "seed", .fallback = 1, .low = 0, .high = 1e9, .doc = "of what it writes at random"},
    {.key = "words",
     .fallback = 10,
     .low = 0,
     .high = 1e6,
     .doc = "that it writes in a hundredth of a second"},
    {.key = NULL},
};

static double option(const struct rm_env_config *config, const char *key, double fallback)
{
    for (uint32_t i = 0; i < config->option_count; i++)
        if (strcmp(config->options[i].key, key) == 0)
            return config->options[i].value;
    return fallback;
}

static int act(struct rm_env *env, int which)
{
    return which > 0 && which < ACTS ? acts[which](env) : 0;
}

/* Agents' names; NULL: there is no second one. */
static const char *const names_of_agents[][2] = {
    {"agent", NULL},  {"../../../../pwn", NULL}, {"a\033[2J", NULL}, {"a\nb", NULL},
    {"twin", "twin"}, {"agent", NULL},           {"left", "right"}};

static struct rm_env *rogue_create(const struct rm_env_config *config, char *error, size_t size)
{
    struct rm_env *env = calloc(1, sizeof *env);
    if (!env)
        return NULL;
    env->worlds = config->worlds;
    env->act = (int)option(config, "act", 0);
    env->at = (uint64_t)option(config, "at", 1);
    env->seed = (uint64_t)option(config, "seed", 1);
    env->words = (uint64_t)option(config, "words", 10);
    const int names = (int)option(config, "names", 0);
    for (int a = 0; a < 2; a++)
        env->agent[a] = (struct rm_env_agent){.name = names_of_agents[names][a],
                                              .dtype = RM_ENV_F32,
                                              .dims = 1,
                                              .shape = {1},
                                              .high = 1,
                                              .actions = 2};
    env->spec = (struct rm_env_spec){.abi_version = RM_ENV_ABI_VERSION,
                                     .struct_size = sizeof env->spec,
                                     .name = names == 5 ? "rogue\n" : "rogue",
                                     .doc = "mis\033]behaves",
                                     .agents = names_of_agents[names][1] ? 2 : 1,
                                     .phases = 1,
                                     .agent = env->agent,
                                     .score_low = NAN,
                                     .score_high = NAN,
                                     .score_random = NAN,
                                     .score_solved = NAN};
    if (option(config, "create", 0) == SPEAKS) {
        snprintf(error, size, "\033]0;mine\007 \302\233 2J\nringctl: all is well");
        free(env);
        return NULL;
    }
    if (option(config, "create", 0) == CRIES) {
        fputs("ringmaster-actor: \033]0;mine\007 \302\233 2J\n", stderr);
        abort();
    }
    if (act(env, (int)option(config, "create", 0)) < 0) {
        snprintf(error, size, "%s", env->error);
        free(env);
        return NULL;
    }
    return env;
}

static const struct rm_env_spec *rogue_describe(const struct rm_env *env)
{
    return &env->spec;
}

static void show(const struct rm_env *env, const struct rm_env_buffers *out)
{
    const uint64_t row = env->step % (LENGTH + 1);
    for (uint32_t w = 0; w < env->worlds; w++) {
        const float place = (float)row / LENGTH;
        for (uint32_t a = 0; a < env->spec.agents; a++) {
            memcpy((char *)out[a].obs + (ptrdiff_t)w * out[a].obs_stride, &place, sizeof place);
            out[a].reward[w] = row > 0;
            out[a].flags[w] = row == 0 ? RM_ENV_FIRST : row == LENGTH ? RM_ENV_TERMINATED : 0;
        }
    }
}

static int rogue_reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    env->step = 0;
    show(env, out);
    return 0;
}

static int rogue_step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                      const struct rm_env_buffers *out)
{
    (void)phase, (void)actions;
    env->step++;
    env->out = out;
    if (env->step == env->at) {
        int rc = act(env, env->act);
        if (rc < 0)
            return rc;
    }
    show(env, out);
    return 0;
}

static size_t rogue_state_size(const struct rm_env *env)
{
    (void)env;
    return 0;
}

static int rogue_no_state(struct rm_env *env, const void *state)
{
    (void)env, (void)state;
    return -ENOTSUP;
}

static int rogue_save_state(const struct rm_env *env, void *state)
{
    (void)env, (void)state;
    return -ENOTSUP;
}

static void rogue_close(struct rm_env *env)
{
    if (other)
        freelocale(other);
    other = (locale_t)0;
    free(env);
}

static const char *rogue_last_error(const struct rm_env *env)
{
    return env->error;
}

/* With ROGUE_TELLS in the environment: which program has loaded it, and whether it is confined. */
__attribute__((constructor)) static void tell_who(void)
{
    char line[256], name[32] = "?", confined[8] = "?";
    FILE *in = getenv("ROGUE_TELLS") ? fopen("/proc/self/status", "r") : NULL;
    while (in && fgets(line, sizeof line, in)) {
        sscanf(line, "Name: %31s", name);
        sscanf(line, "NoNewPrivs: %7s", confined);
    }
    if (in) {
        fclose(in);
        fprintf(stderr, "rogue: loaded by %s, confined: %s\n", name, confined);
    }
}

__attribute__((visibility("default"))) const struct rm_env_ops *rm_env_entry(void);
const struct rm_env_ops *rm_env_entry(void)
{
    static const struct rm_env_ops ops = {.abi_version = RM_ENV_ABI_VERSION,
                                          .struct_size = sizeof ops,
                                          .name = "rogue",
                                          .options = options,
                                          .create = rogue_create,
                                          .describe = rogue_describe,
                                          .reset = rogue_reset,
                                          .step = rogue_step,
                                          .state_size = rogue_state_size,
                                          .save_state = rogue_save_state,
                                          .load_state = rogue_no_state,
                                          .close = rogue_close,
                                          .last_error = rogue_last_error};
    return &ops;
}
