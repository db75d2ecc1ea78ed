/* token_set: which tokens of an input row are there, and which are padding. Tokens come in pieces,
 * one after another; those of a piece are numbers of the row, or one that is always there.
 *
 * C and C++; plain data, which a device is given by value. */
#ifndef RM_LEARNER_BACKEND_TOKEN_SET_H
#define RM_LEARNER_BACKEND_TOKEN_SET_H

#include <stdint.h>

struct rm_token_piece {
    uint32_t tokens;
    uint32_t at;      /* of the first token in the row */
    uint32_t numbers; /* of each token; 0: it is always there */
    uint32_t codes;   /* the row has int32 here, else floats */
    /* 0: a token whose numbers are all 0 is padding. Else counts, one of each frame, say how many
     * there are, of `item` numbers each; a frame has tokens / counts tokens. */
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
