#include "learner/algo/minibatch.h"

#include "shm/base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rm_minibatches_create(struct rm_minibatches *m, const struct rm_minibatches_spec *spec,
                          struct rm_error *error)
{
    *m = (struct rm_minibatches){.spec = *spec};
    m->row = calloc(spec->rows, sizeof *m->row);
    m->word = calloc(spec->rows, sizeof *m->word);
    if (!m->row || !m->word)
        return rm_fail(error, -ENOMEM, "no memory for %u samples", spec->rows);
    return 0;
}

void rm_minibatches_destroy(struct rm_minibatches *m)
{
    free(m->row);
    free(m->word);
    *m = (struct rm_minibatches){0};
}

uint32_t rm_minibatches_most(const struct rm_minibatches *m)
{
    return (m->spec.rows + m->spec.parts - 1) / m->spec.parts;
}

void rm_minibatches_begin(struct rm_minibatches *m, const uint32_t *row, uint32_t samples)
{
    memcpy(m->row, row, samples * sizeof *row);
    m->samples = samples;
}

void rm_minibatches_shuffle(struct rm_minibatches *m, uint64_t pass)
{
    if (!m->spec.shuffled || m->samples < 2)
        return;
    struct rm_rng rng = rm_rng_at(m->spec.seed, RM_STREAM_SHUFFLE, m->spec.policy, pass);
    rm_rng_fill_u32(&rng, m->word, m->samples);
    for (uint32_t i = m->samples - 1; i > 0; i--) {
        const uint32_t j = (uint32_t)((uint64_t)m->word[i] * (i + 1) >> 32);
        const uint32_t row = m->row[i];
        m->row[i] = m->row[j];
        m->row[j] = row;
    }
}
