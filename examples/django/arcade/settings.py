import os

SECRET_KEY = os.environ.get("SECRET_KEY", "for this example alone")
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
ROOT_URLCONF = "arcade.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "laurels.django",
    "scores",
]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]

# Where the database is, PGHOST, PGPORT and PGUSER in the environment say.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "arcade"),
        "ATOMIC_REQUESTS": True,
    }
}

# Without a VALKEY_URL, Laurels starts a Valkey of its own.
LAURELS = {"VALKEY_URL": os.environ.get("VALKEY_URL")}
