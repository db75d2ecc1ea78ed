/* What tensor cores do, for a warp of fibers; copies that are under way. */
#include "learner/backend/cuda/tensor.h"
#include "state.h"

namespace rm_emulated
{
namespace
{
/* Of a thread of the block that runs: what it asked for, and how many groups are closed. */
struct copies {
    struct copy {
        void *to;
        const void *from;
        unsigned group;
    };
    std::deque<copy> under_way;
    unsigned closed;
};
std::vector<copies> &now = *new std::vector<copies>;

/* Number (row, column) of the tile of 16 by 16 that four words of 32 lanes are. */
float tile(float (*from)(uint16_t), const uint32_t *const words[32], unsigned row, unsigned column)
{
    const unsigned matrix = column / 8 * 2 + row / 8, lane = row % 8 * 4 + column % 8 / 2;
    return from((uint16_t)(words[lane][matrix] >> 16 * (column % 2)));
}
} // namespace

void load_matrices(uint32_t *to, unsigned count, bool turned, const void *row, place at)
{
    const unsigned own = lane();
    const unsigned long long *rows = meet(WAIT_MATRIX, 0xffffffffu, (uintptr_t)row, at);
    for (unsigned i = 0; i < 8 * count; i++)
        if (rows[i] % 16)
            trap("a row of a matrix that begins at no multiple of 16 bytes", at);
    for (unsigned m = 0; m < count; m++) {
        uint16_t pair[2];
        for (unsigned i = 0; i < 2; i++) {
            const unsigned r = turned ? own % 4 * 2 + i : own / 4;
            const unsigned c = turned ? own / 4 : own % 4 * 2 + i;
            memcpy(&pair[i], (const char *)(uintptr_t)rows[8 * m + r] + 2 * c, sizeof pair[i]);
        }
        to[m] = pair[0] | (uint32_t)pair[1] << 16;
    }
}

void multiply(float (*from)(uint16_t), product_of_lane *own, place at)
{
    const unsigned long long *words = meet(WAIT_MATRIX, 0xffffffffu, (uintptr_t)own, at);
    if (own->done)
        return;
    const uint32_t *a[32], *b[32];
    product_of_lane *lane[32];
    float left[16][16], right[16][8];
    for (unsigned l = 0; l < 32; l++) {
        lane[l] = (product_of_lane *)(uintptr_t)words[l];
        a[l] = lane[l]->a;
        b[l] = lane[l]->b;
    }
    for (unsigned k = 0; k < 16; k++) {
        for (unsigned m = 0; m < 16; m++)
            left[m][k] = tile(from, a, m, k);
        for (unsigned n = 0; n < 8; n++)
            right[k][n] = from((uint16_t)(b[n * 4 + k % 8 / 2][k / 8] >> 16 * (k % 2)));
    }
    for (unsigned l = 0; l < 32; l++) {
        for (unsigned i = 0; i < 4; i++) {
            float sum = lane[l]->d[i];
            for (unsigned k = 0; k < 16; k++)
                sum += left[l / 4 + i / 2 * 8][k] * right[k][l % 4 * 2 + i % 2];
            lane[l]->d[i] = sum;
        }
        lane[l]->done = true;
    }
}

/* What is there until the copy has been waited for is nothing to be used. */
void copy_later(void *shared, const void *global, place at)
{
    if ((uintptr_t)shared % 16 || (uintptr_t)global % 16)
        trap("a copy of 16 bytes from or to no multiple of that", at);
    if (now.size() <= thread_of_block())
        now.resize(thread_of_block() + 1);
    copies &own = now[thread_of_block()];
    own.under_way.push_back({shared, global, own.closed});
    fill(shared, 16);
}

void copies_close()
{
    if (now.size() > thread_of_block())
        now[thread_of_block()].closed++;
}

void copies_wait(unsigned but)
{
    if (now.size() <= thread_of_block())
        return;
    copies &own = now[thread_of_block()];
    while (!own.under_way.empty() && own.under_way.front().group + but < own.closed) {
        const copies::copy c = own.under_way.front();
        memcpy(c.to, c.from, 16);
        own.under_way.pop_front();
    }
}

void forget_copies()
{
    for (copies &c : now) {
        c.under_way.clear(); /* what it has room for stays: a new one would allocate */
        c.closed = 0;
    }
}
} // namespace rm_emulated
