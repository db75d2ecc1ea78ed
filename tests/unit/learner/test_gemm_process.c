/* What compiled products have of their process: nothing that is another's. */
#include "learner/backend/backend.h"
#include "tests/support/unit.h"

#include <pthread.h>

/* A process's first backend and later ones: what libxsmm gives back at their ends is its own. */
static void others_keep_their_keys(void **state)
{
    struct rm_error error = {""};
    int mine = 7;
    pthread_key_t key[4];
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        struct rm_backend *b;
        assert_int_equal(rm_backend_cpu_create(&b, 1, "auto", &error), 0);
        rm_backend_destroy(b);
        assert_int_equal(pthread_key_create(&key[turn], NULL), 0);
        assert_int_equal(pthread_setspecific(key[turn], &mine), 0);
        for (int k = 0; k <= turn; k++)
            assert_ptr_equal(pthread_getspecific(key[k]), &mine);
    }
    for (int k = 0; k < 4; k++)
        assert_int_equal(pthread_key_delete(key[k]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_keep_their_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
