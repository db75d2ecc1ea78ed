/* real_word: a real number of an action, as the int32 word that rows and worlds have it in; for
 * both sides (shm/base/both.h). */
#ifndef RM_SHM_BASE_REAL_WORD_H
#define RM_SHM_BASE_REAL_WORD_H

#include "shm/base/both.h"

#include <stdint.h>
#include <string.h>

RM_BOTH float rm_real_of_word(int32_t word)
{
    float real;
    memcpy(&real, &word, sizeof real);
    return real;
}

RM_BOTH int32_t rm_word_of_real(float real)
{
    int32_t word;
    memcpy(&word, &real, sizeof word);
    return word;
}

#endif
