/* Knowledge bases for tests of the world `prover`: folders of their own, and atoms as text. */
#ifndef RM_TESTS_SUPPORT_PROVER_H
#define RM_TESTS_SUPPORT_PROVER_H

#include "actor/worlds/builtin/prover_engine.h"

/* A folder under the temporary one, and its files; ends with all of them removed. */
struct rm_test_prover_folder {
    char path[64];
};

void rm_test_prover_folder_make(struct rm_test_prover_folder *folder);
void rm_test_prover_folder_write(const struct rm_test_prover_folder *folder, const char *name,
                                 const char *text, size_t bytes);
void rm_test_prover_folder_remove(const struct rm_test_prover_folder *folder);

/* The same in one call: a knowledge base of these texts, whose folder is gone again. Queries to
 * train with are `train`. */
struct rm_prover_kb *rm_test_prover_kb(const char *facts, const char *rules, const char *train);

/* "r(a,b)", of names that stand bare. */
rm_prover_atom rm_test_prover_atom(const struct rm_prover_kb *kb, const char *text);

/* "p(a,V1) q(V1,d) | Endf": goals, and what there is to choose from. Each valid until the next
 * call. */
const char *rm_test_prover_goals(const struct rm_prover_kb *kb, const rm_prover_atom *atom,
                                 uint32_t count);
const char *rm_test_prover_choice(const struct rm_prover_kb *kb,
                                  const struct rm_prover_episode *episode);

#endif
