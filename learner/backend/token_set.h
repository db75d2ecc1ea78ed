/* token_set: decides which tokens of an input row exist and which are padding. A set has pieces,
 * one after another. A piece is a number of tokens that consist of numbers of the row, or a token
 * that always exists.
 *
 * C and C++; plain data, which is passed to kernels by value. */
#ifndef RM_LEARNER_BACKEND_TOKEN_SET_H
#define RM_LEARNER_BACKEND_TOKEN_SET_H

#include <stdint.h>

struct rm_token_piece {
    uint32_t tokens;
    uint32_t at;      /* of the first token in the row */
    uint32_t numbers; /* of each token; 0: a token that always exists */
    uint32_t codes;   /* 1: the row has int32 here, else floats */
    /* 0: a token whose numbers are all 0 is padding. Else the number of frames: each frame has a
     * count of its existing tokens, in items of `item` numbers, and room for tokens / counts. */
    uint32_t counts, counts_at, item;
};

#define RM_TOKEN_PIECES_MAX 32

struct rm_token_set {
    uint32_t tokens, width; /* of all pieces; words of an input row */
    uint32_t keeps_first;   /* the first token is never padding */
    uint32_t pieces;
    struct rm_token_piece piece[RM_TOKEN_PIECES_MAX];
};

#endif
