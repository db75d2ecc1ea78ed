/* player: plays an experiment's world with given policies, to show every state (`ringctl play` and
 * `watch`) or to compute the results of episodes (`evaluate` and `rank`). Runs in a separate
 * process, confined like an evaluator, and writes frames to a pipe. The reader must not trust the
 * frames, because a foreign world may have written them. */
#ifndef RM_ACTOR_PLAYER_H
#define RM_ACTOR_PLAYER_H

#include "shm/session/session.h"

#define RM_PLAYER_MAGIC       0x52464d52u /* "RMFR" */
#define RM_PLAYER_TEXT_MAX    (1u << 16)
#define RM_PLAYER_PICTURE_MAX 4096u /* pixels, width and height */

enum rm_player_kind {
    RM_PLAYER_FRAME = 1, /* a state: its text, then its picture with 3 bytes per pixel */
    RM_PLAYER_END,       /* the end of an episode, with its steps and score */
    RM_PLAYER_REFUSED,   /* text: why the game ended or did not begin */
    RM_PLAYER_RESULT,    /* text: the results of all episodes as JSON */
    RM_PLAYER_ROWS, /* text: a part of a row of policy `episode`'s ring (rm_stepping_own_rings()).
                     * Rows and their parts come in order */
};

/* A frame on the pipe is this head, then text_bytes, then width * height * 3 bytes. */
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
    RM_PLAYER_ROWS_TOO, /* the same, after the rows of all worlds' vector steps */
    RM_PLAYER_RANK,     /* only a result: ranks of true queries among corrupted ones */
};

struct rm_player_options {
    uint32_t episodes; /* for RM_PLAYER_RANK: queries; 0: all queries of the split */
    enum rm_player_purpose purpose;
    const char *const *files; /* policies; each file has the policy's name */
    uint32_t file_count;
    int fd;
};

/* Worlds that are played at a time for `episodes` tallied episodes. */
uint32_t rm_player_worlds(const struct rm_experiment *experiment, uint32_t episodes);

/* Plays in the world of evaluations and chooses actions as evaluations do. To tally, it also uses
 * the seed and the number of worlds of evaluations. Ranking needs a world with an option `ranking`,
 * the number of corruptions, and the figures `query`, `candidate`, `queries`, `label` and `proved`.
 * The result of a ranking is
 *
 *   {"queries", "corruptions", "head", "tail", "both": {"mrr", "hits1", "hits3", "hits10"},
 *    "proved": {"true", "corrupted"}, "return": {"mean", "stderr"}}
 *
 * Returns 0 after the last episode. After an error, also writes the message as a frame. */
int rm_player_run(const struct rm_experiment *experiment, const struct rm_player_options *options,
                  struct rm_error *error);

#endif
