# What the image of the code interpreter holds beside that of the base template. Its hash, with that of the files beside it, of
# the base image and of the interpreter, names the image.
# shellcheck shell=bash disable=SC2034

# python3-munkres: without it matplotlib's font library asks for scipy, which brings compilers and 600 MB. The BLAS library
# is what makes linear algebra fast; the font has Chinese, Japanese and Korean characters.
INTERPRETER_PACKAGES=(
  python3-ipykernel python3-matplotlib python3-munkres python3-numpy python3-openpyxl python3-pandas python3-pil
  python3-requests libopenblas0-pthread fonts-wqy-zenhei
)

# For those who ask for these languages: 100 and 215 MB. Of Java the runtime is enough: it has JShell and the compiler.
R_PACKAGES=(r-base-core r-cran-irkernel)
JAVA_PACKAGES=(openjdk-17-jre-headless)

# Where the interpreter is in the image.
INTERPRETER_DIR=/opt/interpreter
