/* tiles: the passes of small networks in tiles. A tile is rows, states with their tokens, or lanes
 * of a recurrent network, that fit a core's own cache. One thread computes all steps, the loss and
 * the gradients of a tile. The threads are woken once for all tiles, not once per operation.
 *
 * Whether a network uses tiles depends on the network alone, and the cut depends on the network and
 * the number of rows or states; neither depends on the number of threads, so results do not.
 * Gradients are added up within a slot in the order of its tiles, then over the slots in the order
 * of slots. Only the gradient of a large table is computed from all rows at once, after the tiles.
 *
 * Only for the files of learner/net. A workspace owns its tiles. */
#ifndef RM_LEARNER_NET_TILES_H
#define RM_LEARNER_NET_TILES_H

#include "learner/net/net.h"

#include <stdbool.h>

struct rm_net_tiles;

/* *tiles stays NULL if the network or workspace does not use tiles. */
int rm_net_tiles_create(struct rm_net_tiles **tiles, struct rm_net_workspace *workspace,
                        struct rm_error *error);
void rm_net_tiles_destroy(struct rm_net_tiles *tiles);

/* As rm_net_prepare(). */
void rm_net_tiles_prepare(struct rm_net_tiles *tiles);

/* Are these rows processed in tiles? `tiles` may be NULL. Prepares buffers if the number of steps
 * is new. */
bool rm_net_tiles_take(struct rm_net_tiles *tiles, const struct rm_net_input *input);

/* As rm_net_learn() and rm_net_forward(). The result goes to `out`. */
void rm_net_tiles_learn(struct rm_net_tiles *tiles, const float *params,
                        const struct rm_net_input *input, const struct rm_net_loss *loss,
                        float *grads, double sums[RM_NET_SUMS]);
void rm_net_tiles_forward(struct rm_net_tiles *tiles, const float *params,
                          const struct rm_net_input *input, float *out);

#endif
