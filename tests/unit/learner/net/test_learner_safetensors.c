/* Files of tensors: parsed by hand byte by byte, read back, and refused when anything is wrong with
 * them. With a path as argument, writes an example there and does nothing else (for tests/oracle).
 */
#include "tests/support/tensors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/rm-safetensors-XXXXXX";
static char path[64], beside[64];

static const float weight[] = {1, -2, 3.5f, 0.1f, 1e-30f, -7e20f}, bias[] = {4, 5};
static const struct rm_tensor tensors[] = {
    {"layers.0.weight", 2, {2, 3}, weight},
    {"layers.0.bias", 1, {2}, bias},
};

static int write_example(const char *to, struct rm_error *error)
{
    json_t *metadata = json_pack("{s:s, s:s}", "format", "test", "quote", "say \"1\" \xc3\xa9");
    const int rc = rm_safetensors_write(to, tensors, 2, metadata, error);
    json_decref(metadata);
    return rc;
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    snprintf(beside, sizeof beside, "%s/a.safetensors.tmp", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static size_t read_bytes(uint8_t *to, size_t room)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    const size_t n = fread(to, 1, room, in);
    fclose(in);
    return n;
}

static void bytes_are_as_the_format_says(void **state)
{
    (void)state;
    struct rm_error error = {""};
    static uint8_t bytes[4096];
    assert_int_equal(write_example(path, &error), 0);
    const size_t size = read_bytes(bytes, sizeof bytes);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    assert_int_equal(length % 8, 0);
    assert_int_equal(size, 8 + length + sizeof weight + sizeof bias);
    assert_memory_equal(bytes + 8 + length, weight, sizeof weight);
    assert_memory_equal(bytes + 8 + length + sizeof weight, bias, sizeof bias);
    assert_int_equal(bytes[8], '{');
    size_t end = 8 + length;
    while (bytes[end - 1] == ' ')
        end--;
    assert_true(8 + length - end < 8);
    assert_int_equal(bytes[end - 1], '}');
    char header[2048];
    memcpy(header, bytes + 8, end - 8);
    header[end - 8] = '\0';
    assert_non_null(strstr(header, "\"layers.0.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                                   "\"data_offsets\":[0,24]}"));
    assert_non_null(strstr(header, "\"layers.0.bias\":{\"dtype\":\"F32\",\"shape\":[2],"
                                   "\"data_offsets\":[24,32]}"));
    assert_non_null(strstr(header, "\"__metadata__\":{\"format\":\"test\""));
    assert_int_not_equal(access(beside, F_OK), 0);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_safetensors file;
    assert_int_equal(write_example(path, &error), 0);
    assert_int_equal(rm_safetensors_read(&file, path, &error), 0);
    assert_int_equal(file.count, 2);
    const struct rm_tensor *w = rm_test_tensor(&file, "layers.0.weight");
    assert_non_null(w);
    assert_int_equal(w->dims, 2);
    assert_int_equal(w->shape[1], 3);
    assert_memory_equal(w->data, weight, sizeof weight);
    assert_memory_equal(rm_test_tensor(&file, "layers.0.bias")->data, bias, sizeof bias);
    assert_null(rm_test_tensor(&file, "__metadata__"));
    assert_null(rm_test_tensor(&file, "layers.1.bias"));
    assert_string_equal(rm_test_metadata(&file, "quote"), "say \"1\" \xc3\xa9");
    assert_null(rm_test_metadata(&file, "nothing"));
    rm_safetensors_close(&file);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct rm_error error = {""};
    assert_int_equal(write_example("/nowhere/at/all.safetensors", &error), -ENOENT);
    assert_non_null(strstr(error.text, "/nowhere: No such file"));
}

/* A file that cannot be finished leaves what was there before, and nothing beside it. */
static void a_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_safetensors file;
    assert_int_equal(write_example(path, &error), 0);
    assert_int_equal(mkdir(beside, 0700), 0); /* in the way of the temporary file */
    assert_true(write_example(path, &error) < 0);
    assert_int_equal(rmdir(beside), 0);
    assert_int_equal(rm_safetensors_read(&file, path, &error), 0);
    rm_safetensors_close(&file);
}

static void write_raw(const char *header, uint64_t length, size_t data)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> (8 * i) & 255), out);
    fwrite(header, 1, strlen(header), out);
    for (size_t i = 0; i < data; i++)
        fputc(0, out);
    fclose(out);
}

static void files_with_a_flaw_are_refused(void **state)
{
    (void)state;
#define T(name, offsets)                                                                           \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } flaws[] = {
        {"{" T("a", "[0,8]") "}", 4, "do not match"},
        {"{" T("a", "[0,8]") "}", 12, "end at byte 8 of 12"},
        {"{" T("a", "[4,12]") "}", 12, "begins at 4"},
        {"{" T("a", "[0,8]") "," T("b", "[4,12]") "}", 12, "begins at 4, expected 8"},
        {"{" T("a", "[0,8]") "," T("b", "[12,20]") "}", 20, "begins at 12, expected 8"},
        {"{" T("a", "[0,8]") "," T("a", "[8,16]") "}", 16, "duplicate"},
        {"{" T("a", "[8,0]") "}", 8, "do not match"},
        {"{" T("a", "[0]") "}", 8, "not a pair"},
        {"{" T("a", "[0,-8]") "}", 8, "not a pair"},
        {"{\"a\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]}}", 8, "not F32"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "do not match"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
         "at most 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8,
         "impossible size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[8,8],\"data_offsets\":[0,8]}}", 8, "larger than"},
        {"{\"a\":7}", 0, "not F32"},
        {"[]", 0, "not an object"},
        {"{", 0, "header"},
    };
#undef T
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        struct rm_error error = {""};
        struct rm_safetensors file;
        char padded[512];
        const int length = (int)(strlen(flaws[i].header) + 7) / 8 * 8;
        snprintf(padded, sizeof padded, "%-*s", length, flaws[i].header);
        write_raw(padded, strlen(padded), flaws[i].data);
        const int rc = rm_safetensors_read(&file, path, &error);
        if (rc != -EPROTO || !strstr(error.text, flaws[i].says))
            fail_msg("flaw %zu: %d \"%s\", expected \"%s\"", i, rc, error.text, flaws[i].says);
    }
    struct rm_error error = {""};
    struct rm_safetensors file;
    write_raw("{}      ", 1ull << 40, 0);
    assert_int_equal(rm_safetensors_read(&file, path, &error), -EPROTO);
    write_raw("{}      ", UINT64_MAX, 0);
    assert_int_equal(rm_safetensors_read(&file, path, &error), -EPROTO);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(rm_safetensors_read(&file, path, &error), -EPROTO);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_the_format_says),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(files_with_a_flaw_are_refused),
    };
    if (argc == 2) {
        struct rm_error error = {""};
        return write_example(argv[1], &error) ? 1 : 0;
    }
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
