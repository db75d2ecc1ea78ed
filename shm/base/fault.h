/* fault: named places at which a test can have the process killed. In the usual build RM_FAULT() is
 * empty. In a build with RM_FAULT_SITES, the environment variable RM_FAULT=site[:n] raises SIGKILL
 * when the process passes the named site for the n-th time (from 1). To other processes that looks
 * like the kernel's memory killer. RM_FAULT_LOG names a file to which such a process appends the
 * site.
 *
 * Sites are named "noun.operation.where": "ring.commit.before". Callable from any thread.  */
#ifndef RM_SHM_BASE_FAULT_H
#define RM_SHM_BASE_FAULT_H

#ifdef RM_FAULT_SITES
void rm_fault_pass(const char *site);
#define RM_FAULT(site) rm_fault_pass(site)
#else
#define RM_FAULT(site) ((void)0)
#endif

#endif
