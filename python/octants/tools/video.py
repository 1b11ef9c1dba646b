"""Videos of pictures that a program makes one after the other, as programs for Taichi write them. ffmpeg puts them together."""

from __future__ import annotations

import os
import shutil
import subprocess

from .image import imwrite

__all__ = ["VideoManager"]


class VideoManager:
    """Writes pictures to the folder ``frames`` inside of another one, and makes ``video.mp4`` and ``video.gif`` of them beside it.

    ``width``, ``height`` and ``automatic_build`` are of no use: a video is as large as its pictures, and is made when ``make_video`` is called.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        width: int | None = None,
        height: int | None = None,
        post_processor=None,
        framerate: int = 24,
        automatic_build: bool = True,
    ):
        self.directory = os.fspath(output_dir)
        self.frame_directory = os.path.join(self.directory, "frames")
        self.width, self.height = width, height
        self.post_processor = post_processor
        self.framerate = framerate
        self.automatic_build = automatic_build
        self.frame_counter = 0
        self.frame_fns: list[str] = []
        os.makedirs(self.frame_directory, exist_ok=True)

    def get_output_filename(self, suffix: str) -> str:
        """The name of the video with an ending, such as ``.mp4``."""
        return os.path.join(self.directory, f"video{suffix}")

    def get_frame_directory(self) -> str:
        """The folder that pictures are written to."""
        return self.frame_directory

    def write_frame(self, img) -> None:
        """Writes the next picture, as ``imwrite`` does. ``post_processor``, if there is one, has a method ``process`` that makes it of ``img``."""
        if self.post_processor is not None:
            img = self.post_processor.process(img)
        name = f"{self.frame_counter:06d}.png"
        imwrite(img, os.path.join(self.frame_directory, name))
        self.frame_fns.append(name)
        self.frame_counter += 1

    def write_frames(self, images) -> None:
        """Writes pictures one after the other."""
        for image in images:
            self.write_frame(image)

    def clean_frames(self) -> None:
        """Deletes the pictures that this one has written."""
        for name in self.frame_fns:
            path = os.path.join(self.frame_directory, name)
            if os.path.exists(path):
                os.remove(path)
        self.frame_fns.clear()
        self.frame_counter = 0

    def make_video(self, mp4: bool = True, gif: bool = True) -> None:
        """Makes videos of the pictures. Needs the program ffmpeg."""
        if not self.frame_fns:
            raise RuntimeError("there are no pictures to make a video of: call write_frame first")
        ffmpeg = shutil.which("ffmpeg")
        if ffmpeg is None:
            raise RuntimeError(
                f"make_video needs the program ffmpeg, which is not there; the pictures are in {self.frame_directory}"
            )
        pictures = ["-framerate", str(self.framerate), "-i", os.path.join(self.frame_directory, "%06d.png")]
        # Players want colours of four bytes to three, and even numbers of pixels for that.
        even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
        palette = ["-filter_complex", "[0:v] split [a][b];[a] palettegen [p];[b][p] paletteuse"]
        for wanted, suffix, options in ((mp4, ".mp4", even), (gif, ".gif", palette)):
            if wanted:
                command = [ffmpeg, "-loglevel", "error", "-y", *pictures, *options, self.get_output_filename(suffix)]
                subprocess.run(command, check=True)
