# SPDX-License-Identifier: MIT
# A thin front of meson: how the program is built stands in meson.build.
BUILD := build
PREFIX ?=
# Debian's own: its version is the one that Debian's pytest and python3-dev belong to.
PYTHON ?= /usr/bin/python3
# Seconds for each fuzz target.
SECONDS ?= 60
# What making interpreters may take.
MINUTES ?= 40

.PHONY: all build configure check check-hardware cross gates demo bench fuzz interpreters install clean \
	help

all: build

help:
	@echo 'make                    build the program: build/pathprof'
	@echo 'make demo               record and report a real program; see demo/'
	@echo 'make check              build and test everything, some minutes'
	@echo 'make check-hardware     real counter overflows, in a virtual Arm machine; fetches packages'
	@echo 'make cross              build for aarch64: build-aarch64/pathprof'
	@echo 'make gates              the checks of the text alone, some seconds'
	@echo 'make interpreters       make and cache the CPythons that make check then tries'
	@echo 'make bench              measure; build/bench.json'
	@echo 'make fuzz [SECONDS=60]  fuzz the readers of foreign bytes, SECONDS a target'
	@echo 'make install [PREFIX=DIR] [DESTDIR=DIR]'
	@echo 'make clean              remove what was built'

configure:
	@tools/install-packages build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD)

build: configure
	ninja -C $(BUILD)

check:
	@tools/install-packages build check
	@$(PYTHON) tools/check.py

check-hardware:
	@tools/install-packages build hardware
	@$(PYTHON) tools/hardware/check.py

cross:
	@tools/install-packages build hardware
	@$(PYTHON) tools/hardware/cross.py

gates:
	@tools/install-packages build check
	@$(PYTHON) tools/check.py gates

interpreters:
	@tools/install-packages interpreters
	@$(PYTHON) tools/interpreters.py --minutes $(MINUTES)

demo: build
	@demo/run

bench: build
	@$(PYTHON) bench/run.py $(BUILD)

fuzz:
	@tools/install-packages build check
	@$(PYTHON) tools/fuzz.py --seconds $(SECONDS)

install: build
	$(if $(PREFIX),meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX)))
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) build-* web/dist
