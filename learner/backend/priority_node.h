/* priority_node: one node of a sum tree (shm/priorities.h): the sum of its eight children, and a
 * draw's descent through them. Host and device share this code (shm/base/both.h), so that a
 * device's tree has the bits of the host's and draws find the same leaves. */
#ifndef RM_LEARNER_BACKEND_PRIORITY_NODE_H
#define RM_LEARNER_BACKEND_PRIORITY_NODE_H

#include "shm/base/both.h"

#include <stdint.h>
#include <string.h>

#define RM_PRIORITY_CHILDREN 8u /* RM_PRIORITY_FAN */

/* Adds in the order in which rm_priority_child() subtracts. */
RM_BOTH double rm_priority_sum(const double *c)
{
    return ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
}

/* Selects one of two numbers by masks: a branch would be mispredicted half of the time. */
RM_BOTH double rm_priority_pick(uint64_t which, double yes, double no)
{
    uint64_t y, n, mask = 0 - which;
    double picked;
    memcpy(&y, &yes, sizeof y);
    memcpy(&n, &no, sizeof n);
    y = (y & mask) | (n & ~mask);
    memcpy(&picked, &y, sizeof picked);
    return picked;
}

/* Chooses one of eight neighbours by three halvings: the right half if *u is past the left sum, but
 * never a half with sum 0, so that rounding (u - left may become as large as right) cannot lead to
 * a leaf of 0. */
RM_BOTH uint64_t rm_priority_child(const double *c, double *u)
{
    const double s01 = c[0] + c[1], s23 = c[2] + c[3], s45 = c[4] + c[5], s67 = c[6] + c[7];
    const double low = s01 + s23, high = s45 + s67;
    double left = *u;
    const uint64_t half = (uint64_t)(left >= low) & (uint64_t)(high > 0);
    left -= rm_priority_pick(half, low, 0);
    const double pair = rm_priority_pick(half, s45, s01), other = rm_priority_pick(half, s67, s23);
    const uint64_t second = (uint64_t)(left >= pair) & (uint64_t)(other > 0);
    left -= rm_priority_pick(second, pair, 0);
    const uint64_t at = half * 4 + second * 2;
    const uint64_t third = (uint64_t)(left >= c[at]) & (uint64_t)(c[at + 1] > 0);
    *u = left - rm_priority_pick(third, c[at], 0);
    return at + third;
}

#endif
