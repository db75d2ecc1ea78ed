/* tiles: how small networks learn. Rows, or lanes of recurrent networks, go through all steps, the
 * loss and back in tiles that fit a core's own cache, each tile by one thread; one wake-up of the
 * threads serves all of them, instead of one per operation.
 *
 * Whether a network learns so depends on the network alone, and how rows are cut on their number
 * alone: neither depends on threads, so results do not. Gradients of tiles are added up within a
 * slot in the order of tiles, and those of slots in the order of slots.
 *
 * For the files of this room. Belongs to its workspace. */
#ifndef RM_LEARNER_NET_TILES_H
#define RM_LEARNER_NET_TILES_H

#include "learner/net/net.h"

#include <stdbool.h>

struct rm_net_tiles;

/* *tiles stays NULL for networks and workspaces that are not for tiles. */
int rm_net_tiles_create(struct rm_net_tiles **tiles, struct rm_net_workspace *workspace,
                        struct rm_error *error);
void rm_net_tiles_destroy(struct rm_net_tiles *tiles);

/* As rm_net_prepare(). */
void rm_net_tiles_prepare(struct rm_net_tiles *tiles);

/* Whether these rows go in tiles: NULL does not. Makes ready for a number of steps that it has not
 * met before. */
bool rm_net_tiles_take(struct rm_net_tiles *tiles, const struct rm_net_input *input);

/* As rm_net_learn() and rm_net_forward(). The result goes to `out`. */
void rm_net_tiles_learn(struct rm_net_tiles *tiles, const float *params,
                        const struct rm_net_input *input, const struct rm_net_loss *loss,
                        float *grads, double sums[RM_NET_SUMS]);
void rm_net_tiles_forward(struct rm_net_tiles *tiles, const float *params,
                          const struct rm_net_input *input, float *out);

#endif
