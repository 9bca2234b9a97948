/// Links FAISS and calls nothing of what is replaced: what its libfaiss.so
/// binds to is read from the loader's messages.

#include <cstdio>

#include <faiss/IndexFlat.h>
#include <faiss/gpu/utils/DeviceUtils.h>

int main() {
    const faiss::IndexFlatL2 index(4);
    // A GPU function that makes no CUDA call here keeps the library in.
    int (*devices)() = &faiss::gpu::getNumDevices;
    std::printf("%d %d\n", int(index.d), int(devices != nullptr));
    return 0;
}
