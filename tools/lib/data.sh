# shellcheck shell=bash
# The data sets of the quickstart and the tests.

BITS_DATA=${FAISS_BITS_DATA:-$BITS_CACHE/datasets}

# SIFT, BRIEF and point-cloud descriptors come inside flann's source package;
# Fashion-MNIST is a Debian package of its own.
fetch_data() {
    install_packages dataset-fashion-mnist
    if [[ ! -e $BITS_DATA/sift100K.h5 ]]; then
        with_lock datasets fetch_flann_data
    fi
    say "data sets: $BITS_DATA and Debian's dataset-fashion-mnist"
}

fetch_flann_data() {
    [[ -e $BITS_DATA/sift100K.h5 ]] && return
    local source=$BITS_CACHE/src/flann
    mkdir -p "$BITS_DATA" "$BITS_CACHE/src"
    fetch_debian_source flann "$source"
    # The file that is looked for goes last.
    cp "$source"/datasets/brief100K.h5 "$source"/datasets/cloud.h5 "$BITS_DATA"
    cp "$source/datasets/sift100K.h5" "$BITS_DATA/sift100K.h5.part"
    mv "$BITS_DATA/sift100K.h5.part" "$BITS_DATA/sift100K.h5"
    rm -rf "$source"
}
