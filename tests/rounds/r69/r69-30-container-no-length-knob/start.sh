#!/bin/bash
# model deployment entry point, shape VM.GPU.A10.2
if [ -z "$API_KEY_FILE" ] ; then
  echo "key file not set"; exit 1
else
  export API_KEY=$(cat $API_KEY_FILE)
  echo "Starting server..."
  WEB_CONCURRENCY=1 /opt/nim/start-server.sh
  exit $LastExitCode
fi
# TODO reviewer asks: is there any environment variable that shortens the context? we found none that the image obeys
