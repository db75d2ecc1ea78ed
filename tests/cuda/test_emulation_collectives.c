/* The double of NCCL: ranks as threads and as processes get the same bits, in every order. */
#include "tests/cuda/probes/collectives.h"
#include "tests/cuda/probes/run.h"
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };

static char library[4096];
static collective_fn *collective;

struct rank {
    pthread_t thread;
    char id[COLLECTIVE_ID];
    int rank, wrong, rc;
    float out[PROBE_OUT];
};

static void make_id(char id[COLLECTIVE_ID])
{
    void *object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*get)(char *);
    assert_non_null(object);
    *(void **)&get = dlsym(object, "ncclGetUniqueId");
    assert_int_equal(get(id), 0);
}

static void *live(void *data)
{
    struct rank *r = data;
    r->rc = collective(library, r->id, RANKS, r->rank, r->wrong, r->out);
    return NULL;
}

static float first(unsigned i, int rank)
{
    return (float)(i % 100u) * 0.1f + (float)rank * 0.37f;
}

static void are_right(const struct rank ranks[RANKS])
{
    for (int r = 0; r < RANKS; r++) {
        const float *out = ranks[r].out;
        assert_int_equal(ranks[r].rc, 0);
        for (unsigned i = 0; i < 64; i++) {
            float sum = first((unsigned)r * 64 + i, 0);
            for (int k = 1; k < RANKS; k++)
                sum += first((unsigned)r * 64 + i, k);
            assert_true(out[i] == first(i, RANKS - 1));
            assert_true(out[64 + i] == sum);
        }
        for (int k = 0; k < RANKS; k++)
            assert_true(out[128 + k] == first(0, k));
        for (unsigned i = 0; i < 512; i++) {
            float sum = first(i, 0); /* then three times as much, twice */
            for (int k = 1; k < RANKS; k++)
                sum += first(i, k);
            for (int k = 0; k < 2; k++)
                sum = sum + sum + sum;
            assert_true(out[256 + i] == sum);
        }
        assert_memory_equal(out + 256, ranks[0].out + 256, 512 * sizeof *out);
    }
}

static void as_threads(struct rank ranks[RANKS], int wrong)
{
    char id[COLLECTIVE_ID];
    make_id(id);
    for (int i = 0; i < RANKS; i++) {
        memset(&ranks[i], 0, sizeof ranks[i]);
        memcpy(ranks[i].id, id, sizeof id);
        ranks[i].rank = i;
        ranks[i].wrong = wrong;
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, live, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
}

static void threads_get_the_same_bits(void **state)
{
    static struct rank ranks[RANKS];
    (void)state;
    for (unsigned i = 0; probes_setting(i); i++) {
        as_threads(ranks, 0);
        are_right(ranks);
    }
}

/* A thread that waits for its own stream runs other operations meanwhile. It must not begin an
 * operation that waits for a part which the same thread has not put yet. */
static void no_thread_holds_up_the_others(void **state)
{
    static struct rank ranks[RANKS];
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        char order[32];
        snprintf(order, sizeof order, "random:%u", seed);
        assert_int_equal(probes.order(order), 0);
        as_threads(ranks, 0);
        are_right(ranks);
    }
}

/* A rank's process: executes this program again, since sanitizers lose track of threads over a
 * fork. By its path: under valgrind /proc/self/exe is valgrind. */
static int be_a_rank(const char *fd, const char *rank)
{
    struct rank *ranks =
        mmap(NULL, RANKS * sizeof *ranks, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
    if (ranks == MAP_FAILED)
        return 1;
    live(&ranks[atoi(rank)]);
    return 0;
}

static void processes_get_the_same_bits(void **state)
{
    const int fd = memfd_create("ranks", 0);
    pid_t pids[RANKS];
    char id[COLLECTIVE_ID], fd_text[12];
    (void)state;
    assert_int_equal(ftruncate(fd, RANKS * sizeof(struct rank)), 0);
    struct rank *ranks =
        mmap(NULL, RANKS * sizeof *ranks, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(ranks != MAP_FAILED);
    snprintf(fd_text, sizeof fd_text, "%d", fd);
    make_id(id);
    for (int i = 0; i < RANKS; i++) {
        char rank[12];
        snprintf(rank, sizeof rank, "%d", i);
        ranks[i].rank = i;
        ranks[i].rc = -1;
        memcpy(ranks[i].id, id, sizeof id);
        if ((pids[i] = fork()) == 0) {
            execl(rm_test_build_path("tests/cuda/test_emulation_collectives"), "rank", fd_text,
                  rank, (char *)NULL);
            _exit(1);
        }
    }
    for (int i = 0; i < RANKS; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        assert_int_equal(status, 0);
    }
    are_right(ranks);
    munmap(ranks, RANKS * sizeof *ranks);
    close(fd);
}

static void ranks_that_disagree_fail(void **state)
{
    static struct rank ranks[RANKS];
    int failed = 0;
    (void)state;
    as_threads(ranks, 1);
    for (int i = 0; i < RANKS; i++)
        failed += ranks[i].rc == LAUNCH_FAILURE;
    assert_int_equal(failed, RANKS);
    assert_non_null(strstr(probes.complaint(), "different collectives"));
}

int main(int argc, char **argv)
{
    setenv("RM_EMULATED_DEVICES", "3", 1);
    setenv("RINGMASTER_CUDA_PLUGIN", rm_test_build_path("lib/emulated/probes.so"), 1);
    snprintf(library, sizeof library, "%s", rm_test_build_path("lib/emulated/libnccl.so.2"));
    probes_open();
    *(void **)&collective = dlsym(probes.object, "collective_rank");
    if (argc == 3)
        return be_a_rank(argv[1], argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(threads_get_the_same_bits, probes_fresh),
        cmocka_unit_test_setup(no_thread_holds_up_the_others, probes_fresh),
        cmocka_unit_test_setup(processes_get_the_same_bits, probes_fresh),
        cmocka_unit_test_setup(ranks_that_disagree_fail, probes_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
