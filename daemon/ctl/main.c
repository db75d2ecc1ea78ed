#include "daemon/ctl/command.h"
#include "shm/base/file.h"

int main(int argc, char **argv)
{
    rm_file_hold_standard();
    return rm_ctl_main(argc, argv);
}
