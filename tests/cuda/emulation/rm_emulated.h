/* rm_emulated: launches for launch.h, where kernels are compiled by the host's compiler. */
#ifndef RM_TESTS_CUDA_EMULATION_RM_EMULATED_H
#define RM_TESTS_CUDA_EMULATION_RM_EMULATED_H

#include "cuda_runtime.h"

#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

namespace rm_emulated
{
struct kernel_launch {
    const char *name;     /* as the launch has it */
    const void *function; /* the kernel's address */
    dim3 grid, block;
    size_t shared, argument_bytes;
    std::function<void()> thread;       /* the kernel with its arguments, as they were */
    std::vector<const void *> pointers; /* those among the arguments */
    std::vector<uint64_t> words;        /* of arguments that may have pointers inside */
};

/* Checks what CUDA checks and puts it on the stream; what is wrong is found by cudaGetLastError. */
void launch(kernel_launch &&l, cudaStream_t stream);

template <class... P, class... A>
void launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
            cudaStream_t stream, A &&...arguments)
{
    static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has");
    static_assert((std::is_trivially_copyable<P>::value && ...), "arguments are copied as bytes");
    std::tuple<std::decay_t<P>...> kept(static_cast<P>(arguments)...);
    kernel_launch l{name, (const void *)kernel, grid, block, shared, sizeof kept, {}, {}, {}};
    std::apply(
        [&](const auto &...a) {
            ((void)([&] {
                 if constexpr (std::is_pointer<std::decay_t<decltype(a)>>::value)
                     l.pointers.push_back((const void *)a);
                 else if constexpr (sizeof a >= 8 && alignof(decltype(a)) >= 8) {
                     uint64_t words[sizeof a / 8];
                     memcpy(words, &a, sizeof words);
                     for (const uint64_t word : words)
                         l.words.push_back(word);
                 }
             }()),
             ...);
        },
        kept);
    l.thread = [kernel, kept] { std::apply(kernel, kept); };
    launch(std::move(l), stream);
}
} // namespace rm_emulated

#define RM_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                  \
    ::rm_emulated::launch(#kernel, kernel, grid, block, shared_bytes, stream, ##__VA_ARGS__)

#define RM_SHARED(type, name)                                                                      \
    type *const name = reinterpret_cast<type *>(::rm_emulated::dynamic_shared)

#endif
