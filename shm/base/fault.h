/* fault: named places at which a test can have the process killed. In the usual build RM_FAULT() is
 * nothing at all. In a build with RM_FAULT_SITES, the environment variable RM_FAULT=site[:n] raises
 * SIGKILL when the named site is passed for the n-th time (from 1), which is what a power cut or
 * the kernel's memory killer looks like to the others. RM_FAULT_LOG names a file to which the sites
 * are added at which a process ended so.
 *
 * Sites are named "noun.operation.where": "ring.commit.before". Callable from any thread. */
#ifndef RM_SHM_BASE_FAULT_H
#define RM_SHM_BASE_FAULT_H

#ifdef RM_FAULT_SITES
void rm_fault_pass(const char *site);
#define RM_FAULT(site) rm_fault_pass(site)
#else
#define RM_FAULT(site) ((void)0)
#endif

#endif
