/* shm/region: sealing, publication, and every reason to refuse an attach or a creation. */
#include "tests/support/unit.h"

#include "shm/layout.h"
#include "shm/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rm_error error;

static void made(struct rm_region *region, size_t bytes)
{
    assert_int_equal(rm_region_create(region, RM_REGION_TEXT, "rm-test", bytes, &error), 0);
}

static void awaits_publication(void **state)
{
    (void)state;
    struct rm_region a, b;
    made(&a, 8192);
    assert_int_equal(rm_region_attach(&b, a.fd, RM_REGION_TEXT, false, &error),
                     RM_ATTACH_AWAITING_VERSION);
    assert_null(b.base);
    memcpy(rm_region_payload(&a), "hello", 6);
    rm_region_publish(&a);
    assert_int_equal(rm_region_attach(&b, a.fd, RM_REGION_TEXT, false, &error), RM_ATTACH_OK);
    assert_int_equal(b.bytes, 8192);
    assert_int_equal(rm_region_payload_bytes(&b), 8192 - sizeof(struct rm_region_header));
    assert_string_equal(rm_region_payload(&b), "hello");
    rm_region_close(&b);
    rm_region_close(&b); /* harmless */
    rm_region_close(&a);
}

static void cannot_change_size(void **state)
{
    (void)state;
    struct rm_region a;
    made(&a, 8192);
    assert_int_equal(ftruncate(a.fd, 4096), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(a.fd, 16384), -1);
    assert_true(fcntl(a.fd, F_GETFD) & FD_CLOEXEC);
    rm_region_close(&a);
}

static void read_only_is_read_only(void **state)
{
    (void)state;
    struct rm_region a, b;
    made(&a, 4096);
    rm_region_publish(&a);
    pid_t child = fork();
    if (child == 0) {
        if (rm_region_attach(&b, a.fd, RM_REGION_TEXT, false, &error) != RM_ATTACH_OK)
            _exit(9);
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)rm_region_payload(&b) = 1;
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    /* A sanitizer turns the signal into an exit code of its own. */
    assert_true(WIFSIGNALED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9));
    rm_region_close(&a);
}

/* Attaches after `spoil` and expects -EPROTO with `words` in the message. */
static void expect_refusal(void (*spoil)(struct rm_region_header *), enum rm_region_kind kind,
                           const char *words)
{
    struct rm_region a, b;
    made(&a, 4096);
    rm_region_publish(&a);
    if (spoil)
        spoil(a.base);
    assert_int_equal(rm_region_attach(&b, a.fd, kind, false, &error), -EPROTO);
    if (!strstr(error.text, words))
        fail_msg("'%s' lacks '%s'", error.text, words);
    assert_null(b.base);
    rm_region_close(&a);
}

static void spoil_magic(struct rm_region_header *h)
{
    RM_POKE(&h->magic, 42);
}
static void spoil_unpublished_magic(struct rm_region_header *h)
{
    RM_POKE(&h->magic, 42);
    RM_POKE(&h->version, 0);
}
static void spoil_version(struct rm_region_header *h)
{
    RM_POKE(&h->version, RM_LAYOUT_VERSION + 1);
}
static void spoil_hash(struct rm_region_header *h)
{
    h->layout_hash ^= 1;
}
static void spoil_bytes(struct rm_region_header *h)
{
    h->bytes = 8192;
}

static void refuses_foreign_headers(void **state)
{
    (void)state;
    expect_refusal(spoil_magic, RM_REGION_TEXT, "magic is 0x2a");
    expect_refusal(spoil_unpublished_magic, RM_REGION_TEXT, "magic");
    char words[64];
    snprintf(words, sizeof words, "layout version is %u, this build has %u", RM_LAYOUT_VERSION + 1,
             RM_LAYOUT_VERSION);
    expect_refusal(spoil_version, RM_REGION_TEXT, words);
    expect_refusal(spoil_hash, RM_REGION_TEXT, "layout hash");
    expect_refusal(spoil_bytes, RM_REGION_TEXT, "header says 8192 bytes, the file has 4096");
    expect_refusal(NULL, RM_REGION_RING, "kind is text (4), expected ring (2)");
}

static void refuses_foreign_descriptors(void **state)
{
    (void)state;
    struct rm_region b;
    assert_int_equal(rm_region_attach(&b, 999, RM_REGION_TEXT, false, &error), -EBADF);

    int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(rm_region_attach(&b, fd, RM_REGION_TEXT, false, &error), -EPROTO);
    assert_non_null(strstr(error.text, "holds 0 bytes"));
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(rm_region_attach(&b, fd, RM_REGION_TEXT, false, &error), -EPROTO);
    assert_non_null(strstr(error.text, "not a sealed memfd"));
    close(fd);

    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(rm_region_attach(&b, fd, RM_REGION_TEXT, false, &error), -EPROTO);
    close(fd);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct rm_region a;
    assert_int_equal(rm_region_create(&a, RM_REGION_TEXT, "tiny", 8, &error), -EINVAL);
    assert_int_equal(rm_region_create(&a, RM_REGION_TEXT, "huge", (size_t)1 << 45, &error),
                     -ENOMEM);
    assert_non_null(strstr(error.text, "region huge: needs 35184372088832 bytes"));
    assert_non_null(strstr(error.text, "are free"));
    assert_null(a.base);
}

static void limit_on_file_size_is_words_not_a_signal(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct rm_region a;
        struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
        setrlimit(RLIMIT_FSIZE, &limit);
        int rc = rm_region_create(&a, RM_REGION_TEXT, "limited", 8192, &error);
        _exit(rc == -ENOSPC && strstr(error.text, "ulimit -f") ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void no_descriptor_is_words(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct rm_region a;
        struct rlimit limit = {.rlim_cur = 8, .rlim_max = 8};
        setrlimit(RLIMIT_NOFILE, &limit);
        while (dup(1) >= 0)
            ;
        int rc = rm_region_create(&a, RM_REGION_TEXT, "limited", 8192, &error);
        _exit(rc == -EMFILE && strstr(error.text, "ulimit -n") ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awaits_publication),
        cmocka_unit_test(cannot_change_size),
        cmocka_unit_test(read_only_is_read_only),
        cmocka_unit_test(refuses_foreign_headers),
        cmocka_unit_test(refuses_foreign_descriptors),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(limit_on_file_size_is_words_not_a_signal),
        cmocka_unit_test(no_descriptor_is_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
