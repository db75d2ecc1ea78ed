/* synonyms: names of stable-baselines3, CleanRL, RLlib and PufferLib for keys and values that have
 * other names here. An error about such a name suggests ours. Read-only data; any thread. */
#ifndef RM_CONFIG_SYNONYMS_H
#define RM_CONFIG_SYNONYMS_H

struct rm_synonym {
    const char *theirs; /* "n_envs"; case, and '-' or '_', do not matter */
    const char *ours;   /* "actor.worlds"; of a name: one of a key's names, "vtrace" */
    const char *note;   /* how ours differs; NULL: not at all */
};

extern const struct rm_synonym rm_key_synonyms[];  /* of keys and sections; ends with NULL */
extern const struct rm_synonym rm_name_synonyms[]; /* of names as values; ends with NULL */

/* The row of a key's last part, or NULL. */
const struct rm_synonym *rm_synonym_of_key(const char *leaf);

/* The row of a name whose `ours` is among `names` (ends with NULL), or NULL. */
const struct rm_synonym *rm_synonym_of_name(const char *name, const char *const *names);

#endif
