/* Loaded before the C library: so many threads may be there at a time, RM_TEST_THREADS besides the
 * first, and further ones cannot be made. What a limit of processes does, for root as well. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int there;

struct begun {
    void *(*run)(void *);
    void *argument;
};

static void *run(void *begun)
{
    const struct begun b = *(struct begun *)begun;
    free(begun);
    void *result = b.run(b.argument);
    atomic_fetch_sub(&there, 1);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *),
                   void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    const char *text = getenv("RM_TEST_THREADS");
    struct begun *b = malloc(sizeof *b);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!b || !real || (text && atomic_fetch_add(&there, 1) >= atoi(text))) {
        atomic_fetch_sub(&there, 1);
        free(b);
        return EAGAIN;
    }
    *b = (struct begun){begin, argument};
    return real(thread, attributes, run, b);
}
