/* Checks the terminal before newterm(), which leaks memory when it fails. A separate file, because
 * term.h defines hundreds of short names. */
#include "daemon/ctl/top.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

bool rm_top_terminal_known(void)
{
    int found = 0;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}
