# cule with CUDA, for GPUs of compute capability 7.5 to 12.x; the driver has to be 580 or newer.
#
#   docker build -t cule .
#   docker run --rm --gpus all cule                        # says what it finds
#   docker run --rm --gpus all -it cule python             # import cule
ARG CUDA=13.0.1
FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04 AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /venv
WORKDIR /cule
COPY . .
ENV PIP_CONSTRAINT=/cule/constraints.txt PIP_BUILD_CONSTRAINT=/cule/constraints.txt
# No GPU is visible here, so that there is code for all of CMakeLists.txt's architectures.
RUN CULE_CUDA=ON /venv/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM nvidia/cuda:${CUDA}-base-ubuntu24.04
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* && python3 -m venv /venv
ENV PATH=/venv/bin:$PATH
COPY --from=build /wheels /cule/constraints.txt /wheels/
# torch's builds for CUDA bring the run-time compiler that translates games.
RUN export PIP_CONSTRAINT=/wheels/constraints.txt PIP_NO_CACHE_DIR=1 \
    && pip install torch --index-url https://download.pytorch.org/whl/cu130 \
    && pip install /wheels/*.whl 'imageio[ffmpeg]' pillow
# Not as root. The compiled games are kept in the user's home.
RUN useradd --create-home cule
USER cule
WORKDIR /home/cule
CMD ["python", "-m", "cule.info"]
