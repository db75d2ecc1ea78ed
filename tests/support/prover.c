#include "tests/support/prover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const file_names[] = {"facts.pl",  "facts.tsv",  "rules.pl",  "rules.arrow",
                                         "train.txt", "train.tsv",  "valid.txt", "valid.tsv",
                                         "test.txt",  "domains.txt"};

void rm_test_prover_folder_make(struct rm_test_prover_folder *folder)
{
    *folder = (struct rm_test_prover_folder){.path = "/tmp/ringmaster-prover-XXXXXX"};
    assert_non_null(mkdtemp(folder->path));
}

void rm_test_prover_folder_write(const struct rm_test_prover_folder *folder, const char *name,
                                 const char *text, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

void rm_test_prover_folder_remove(const struct rm_test_prover_folder *folder)
{
    char path[128];
    for (size_t i = 0; i < sizeof file_names / sizeof file_names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, file_names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder->path), 0);
}

struct rm_prover_kb *rm_test_prover_kb(const char *facts, const char *rules, const char *train)
{
    struct rm_test_prover_folder folder = {.path = ""};
    char error[512] = "";
    rm_test_prover_folder_make(&folder);
    rm_test_prover_folder_write(&folder, "facts.pl", facts, strlen(facts));
    rm_test_prover_folder_write(&folder, "rules.pl", rules, strlen(rules));
    rm_test_prover_folder_write(&folder, "train.txt", train, strlen(train));
    struct rm_prover_kb *kb = rm_prover_kb_open(folder.path, 512, error, sizeof error);
    rm_test_prover_folder_remove(&folder);
    if (!kb)
        fail_msg("%s", error);
    return kb;
}

static uint32_t id_of(const struct rm_prover_names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return i + 1;
    fail_msg("there is no %s", name);
    return 0;
}

rm_prover_atom rm_test_prover_atom(const struct rm_prover_kb *kb, const char *text)
{
    char pred[32], first[32], second[32];
    if (sscanf(text, "%31[^(](%31[^,],%31[^)])", pred, first, second) != 3)
        fail_msg("%s is no atom", text);
    return rm_prover_atom_of(id_of(&kb->predicate, pred), id_of(&kb->constant, first),
                             id_of(&kb->constant, second));
}

static size_t write_goals(const struct rm_prover_kb *kb, const rm_prover_atom *atom, uint32_t count,
                          char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s", i ? " " : "");
        used += rm_prover_write(kb, atom[i], text + used, size - used);
        assert_true(used < size);
    }
    return used;
}

const char *rm_test_prover_goals(const struct rm_prover_kb *kb, const rm_prover_atom *atom,
                                 uint32_t count)
{
    static char text[4096];
    text[0] = 0;
    write_goals(kb, atom, count, text, sizeof text);
    return text;
}

const char *rm_test_prover_choice(const struct rm_prover_kb *kb,
                                  const struct rm_prover_episode *episode)
{
    static char text[16384];
    size_t used = 0;
    for (uint32_t i = 0; i < episode->successors; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i ? " | " : "");
        used += write_goals(kb, episode->successor[i], episode->size[i], text + used,
                            sizeof text - used);
    }
    return text;
}
