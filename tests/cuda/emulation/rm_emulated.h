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

/* The words of an argument that may have pointers inside. What was in its padding before must not
 * be taken for one: not looked at by compilers that cannot clear it. */
template <class T>
void look_within(const T &argument, std::vector<uint64_t> *words)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    if constexpr (std::is_class<T>::value && alignof(T) >= 8) {
        uint64_t own[sizeof(T) / 8];
        T copy = argument;
        __builtin_clear_padding(&copy);
        memcpy(own, &copy, sizeof own);
        for (const uint64_t word : own)
            words->push_back(word);
    }
#endif
#endif
    (void)argument;
    (void)words;
}

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
                 else
                     look_within(a, &l.words);
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
