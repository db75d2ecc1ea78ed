/* player: plays an experiment's world with given policies: to show every state, for people to look
 * at (`ringctl play` and `watch`), or for what the episodes come to (`evaluate` and `rank`). Runs
 * in a process of its own, confined as an evaluator is, and writes frames to a pipe; who reads them
 * takes them for what a world may have written. */
#ifndef RM_ACTOR_PLAYER_H
#define RM_ACTOR_PLAYER_H

#include "shm/session/session.h"

#define RM_PLAYER_MAGIC       0x52464d52u /* "RMFR" */
#define RM_PLAYER_TEXT_MAX    (1u << 16)
#define RM_PLAYER_PICTURE_MAX 4096u /* pixels, width and height */

enum rm_player_kind {
    RM_PLAYER_FRAME = 1, /* a state: its text, then its picture of 3 bytes a pixel */
    RM_PLAYER_END,       /* of an episode: steps and score are its own */
    RM_PLAYER_REFUSED,   /* text: why nothing is played, or no more */
    RM_PLAYER_RESULT,    /* text: JSON, what all episodes came to */
};

/* What comes through the pipe: this, then text_bytes and width * height * 3 bytes. */
struct rm_player_head {
    uint32_t magic, kind;
    uint32_t episode, step; /* from 1; vector steps made */
    double score;           /* of all agents, so far */
    uint32_t text_bytes, width, height;
    uint32_t zero;
};

enum rm_player_purpose {
    RM_PLAYER_SHOW = 0, /* frames of every state, as text */
    RM_PLAYER_PICTURE,  /* as pictures */
    RM_PLAYER_TALLY,    /* only a result: rm_tallies_json() */
    RM_PLAYER_RANK,     /* only a result: ranks of true queries among corrupted ones */
};

struct rm_player_options {
    uint32_t episodes; /* to rank: queries; 0: all of the split */
    enum rm_player_purpose purpose;
    const char *const *files; /* policies, each with its name in it */
    uint32_t file_count;
    int fd;
};

/* Plays in the world of evaluations, with their answers; to tally, also with their seed and number
 * of worlds. Ranking needs a world whose option `ranking` is a number of corruptions, which then
 * has the figures `query`, `candidate`, `queries`, `label` and `proved`. A result is
 *
 *   {"queries", "corruptions", "head", "tail", "both": {"mrr", "hits1", "hits3", "hits10"},
 *    "proved": {"true", "corrupted"}, "return": {"mean", "stderr"}}
 *
 * Returns when all episodes are over, or with what was wrong, which is written as a frame as
 * well. */
int rm_player_run(const struct rm_experiment *experiment, const struct rm_player_options *options,
                  struct rm_error *error);

#endif
