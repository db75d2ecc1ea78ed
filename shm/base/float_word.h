/* float_word: the 32 bits of a float as an int32 word and back. Rows and worlds have a real number
 * of an action as such a word. For both sides (shm/base/both.h). */
#ifndef RM_SHM_BASE_FLOAT_WORD_H
#define RM_SHM_BASE_FLOAT_WORD_H

#include "shm/base/both.h"

#include <stdint.h>
#include <string.h>

RM_BOTH float rm_float_of_word(int32_t word)
{
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

RM_BOTH int32_t rm_word_of_float(float x)
{
    int32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

#endif
