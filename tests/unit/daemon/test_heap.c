/* What the heap keeps: of many threads as of one, of large blocks nothing; and that a daemon whose
 * threads have read its configuration has no heaps of theirs. */
#include "tests/support/allocations.h"
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include "daemon/heap.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, BLOCKS = 500, BLOCK = 1000, LARGE = 16 << 20 };

#define HEAP_ALIGNMENT                                                                             \
    (UINT64_C(64) << 20) /* glibc's heaps of threads begin at multiples of it                      \
                          */

static struct rm_test_daemon d;

static int end(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

static unsigned heaps(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    assert_int_equal(malloc_info(0, file), 0);
    fclose(file);
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++)
        n++;
    free(text);
    return n;
}

/* All of them have blocks at the same time. */
static void *allocate(void *together)
{
    static _Thread_local void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(BLOCK);
    pthread_barrier_wait(together);
    uintptr_t all = 1;
    for (int i = 0; i < BLOCKS; i++) {
        all = all && blocks[i];
        free(blocks[i]);
    }
    return all ? together : NULL; /* anything but NULL */
}

static void threads_share_one_heap(void **state)
{
    (void)state;
    if (!rm_test_allocations_counted()) {
        print_message("skipped: sanitizers have an allocator of their own\n");
        skip();
    }
    pthread_t threads[THREADS];
    pthread_barrier_t together;
    assert_true(rm_heap_share());
    assert_int_equal(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, &together), 0);
    for (int i = 0; i < THREADS; i++) {
        void *well = NULL;
        pthread_join(threads[i], &well);
        assert_non_null(well);
    }
    pthread_barrier_destroy(&together);
    assert_int_equal(heaps(), 1);
}

/* One that is freed does not draw the next ones into the heap, which has no such gap. */
static void large_blocks_stand_apart(void **state)
{
    (void)state;
    if (!rm_test_allocations_counted())
        skip();
    static const size_t sizes[] = {LARGE, LARGE / 2, LARGE / 4};
    assert_true(rm_heap_share());
    void *volatile first = malloc(LARGE);
    assert_non_null(first);
    free(first);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t before = mallinfo2().hblks;
        void *volatile block = malloc(sizes[i]);
        assert_non_null(block);
        assert_int_equal(mallinfo2().hblks, before + 1);
        free(block);
        assert_int_equal(mallinfo2().hblks, before);
    }
}

/* Mappings that begin where heaps of threads do, and go on to where those end. */
static unsigned heaps_of_threads(pid_t pid)
{
    char path[64], line[512], access[8];
    uint64_t from, to, heap = 0;
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, access) != 3)
            continue;
        n += heap && from == heap && to % HEAP_ALIGNMENT == 0 && strcmp(access, "---p") == 0;
        heap = from % HEAP_ALIGNMENT == 0 && strcmp(access, "rw-p") == 0 ? to : 0;
    }
    fclose(maps);
    return n;
}

static void a_daemon_that_read_its_file_again_has_one_heap(void **state)
{
    (void)state;
    if (!rm_test_allocations_counted())
        skip(); /* and one of them maps what looks like heaps of threads */
    static const char config[] =
        "{\"name\":\"x\",\"run\":{\"steps\":0},\"world\":{\"name\":\"count\"},"
        "\"algorithm\":{\"name\":\"dqn\"},"
        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]}}";
    assert_int_equal(rm_test_daemon_home(&d, "heap", config), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, true, 0), 0);
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_text(fd, "state", "running"));
    assert_int_equal(kill(d.pid, SIGHUP), 0);
    assert_true(rm_test_until_file(&d, "log.txt", "reload: "));
    assert_int_equal(heaps_of_threads(d.pid), 0);
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
}

int main(int argc, char **argv)
{
    const int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_one_heap),
        cmocka_unit_test(large_blocks_stand_apart),
        cmocka_unit_test_teardown(a_daemon_that_read_its_file_again_has_one_heap, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
